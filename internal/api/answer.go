package api

import (
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/kessai/kessai/internal/problem"
)

// answer is what a route has to say.
type answer struct {
	status int
	header map[string]string
	body   []byte
}

// lookAgain is when to ask again about an outcome that is not known yet.
const lookAgain = time.Second

// reply is an answer with a JSON body. Answers may hold a customer's redirect
// address, so nobody keeps them.
func reply(status int, v any) (answer, error) {
	// Deterministic: two answers about one state are the same bytes.
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return answer{}, err
	}
	return answer{status, map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}, body}, nil
}

// accepted is an answer 202: where to look and when.
func accepted(v any, location string) (answer, error) {
	a, err := reply(http.StatusAccepted, v)
	if err != nil {
		return answer{}, err
	}
	a.header["Retry-After"] = problem.Seconds(lookAgain)
	return a.at(location), nil
}

// at names where the resource is read.
func (a answer) at(location string) answer {
	a.header["Location"] = location
	return a
}

// replayed marks the answer to a repeat.
func (a answer) replayed(yes bool) answer {
	if yes {
		a.header["Idempotent-Replayed"] = "true"
	}
	return a
}

func refusal(e *problem.Error) answer { return answer{e.Status(), e.Header(), e.Body()} }

// list is one page of a list.
type list[T any] struct {
	Object     string  `json:"object"`
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// page is an answer with one page of rows, each rendered.
func page[R, T any](rows []R, next string, render func(R) T) (answer, error) {
	l := list[T]{Object: "list", Data: make([]T, 0, len(rows))}
	for _, row := range rows {
		l.Data = append(l.Data, render(row))
	}
	if next != "" {
		l.NextCursor = &next
	}
	return reply(http.StatusOK, l)
}

func (a answer) response(method string) events.APIGatewayV2HTTPResponse {
	r := events.APIGatewayV2HTTPResponse{StatusCode: a.status, Headers: a.header}
	if method != http.MethodHead {
		r.Body = string(a.body)
	}
	return r
}
