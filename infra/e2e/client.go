package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// client is one caller of one address.
type client struct {
	stage *stage
	base  string
	token string // Bearer token, "" for none
}

// object is a JSON object to send.
type object map[string]any

// with is o with other members; a member that is nothing is left out.
func (o object) with(members object) object {
	all := object{}
	for _, source := range []object{o, members} {
		for name, value := range source {
			all[name] = value
			if value == absent {
				delete(all, name)
			}
		}
	}
	return all
}

// absent takes a member out of an object.
var absent any = struct{ nothing string }{"nothing"}

// raw is a body that is sent as it is.
type raw string

// request is one call.
type request struct {
	method, path string
	body         any // nil for none, raw as it is, anything else as JSON
	header       map[string]string
	undocumented bool // the judge has nothing to say about it
}

// answer is what came back.
type answer struct {
	request string // for messages
	status  int
	header  http.Header
	body    []byte
}

// bytes is the body as it is sent.
func (r request) bytes() ([]byte, error) {
	switch b := r.body.(type) {
	case nil:
		return nil, nil
	case raw:
		return []byte(b), nil
	case []byte:
		return b, nil
	default:
		return json.Marshal(b)
	}
}

// try sends a request; err says that there was no answer. It may be called from
// any goroutine.
func (c client) try(r request) (answer, error) {
	a := answer{request: r.method + " " + r.path}
	body, err := r.bytes()
	if err != nil {
		return a, err
	}
	req, err := http.NewRequest(r.method, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	response, err := c.stage.http.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = response.Body.Close() }()
	a.status, a.header = response.StatusCode, response.Header
	if a.body, err = io.ReadAll(response.Body); err != nil {
		return a, err
	}
	if c.stage.Judge != nil && !r.undocumented && (c.base == c.stage.API || c.base == c.stage.Webhook) {
		c.stage.Judge(req, body, response, a.body)
	}
	return a, nil
}

func (c client) send(t *testing.T, r request) answer {
	t.Helper()
	a, err := c.try(r)
	if err != nil {
		t.Fatalf("%s: %v\n%s", a.request, err, a)
	}
	return a
}

func (c client) get(t *testing.T, path string) answer {
	t.Helper()
	return c.send(t, request{method: http.MethodGet, path: path})
}

// post sends with a key that was never used.
func (c client) post(t *testing.T, path string, body any) answer {
	t.Helper()
	return c.postKey(t, path, c.stage.unique("key"), body)
}

func (c client) postKey(t *testing.T, path, key string, body any) answer {
	t.Helper()
	return c.send(t, post(path, key, body))
}

func post(path, key string, body any) request {
	return request{method: http.MethodPost, path: path, body: body, header: map[string]string{"Idempotency-Key": key}}
}

func (a answer) String() string {
	return fmt.Sprintf("%s: %d %s", a.request, a.status, bytes.TrimSpace(a.body))
}

// want fails the test unless the status is one of these.
func (a answer) want(t *testing.T, statuses ...int) answer {
	t.Helper()
	if !slices.Contains(statuses, a.status) {
		t.Fatalf("got %s, want status %v", a, statuses)
	}
	return a
}

// decode reads the body as one JSON value.
func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("%s: more than one JSON value", a)
	}
}

// members reads the body as a JSON object of any members.
func (a answer) members(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	a.decode(t, &all)
	return all
}

// replayed reports the header of a replay, and fails on any value but true.
func (a answer) replayed(t *testing.T) bool {
	t.Helper()
	value, found := a.header.Get("Idempotent-Replayed"), len(a.header.Values("Idempotent-Replayed")) > 0
	if found && value != "true" {
		t.Errorf("%s: got Idempotent-Replayed: %q, want true or none", a, value)
	}
	return found
}

// location checks that Location leads to the resource.
func (a answer) location(t *testing.T, path string) {
	t.Helper()
	if got := a.header.Get("Location"); !strings.HasSuffix(got, path) {
		t.Errorf("%s: got Location %q, want %s", a, got, path)
	}
}

// problem is an error as clients see it.
type problem struct {
	Type, Title, Detail, Code string
	Status                    int
	PaymentID                 string `json:"payment_id"`
}

// problem checks that the answer is that error, in its form.
func (a answer) problem(t *testing.T, status int, codes ...string) problem {
	t.Helper()
	var p problem
	if a.status != status {
		t.Fatalf("got %s, want %d %v", a, status, codes)
	}
	if got := a.header.Get("Content-Type"); !strings.HasPrefix(got, "application/problem+json") {
		t.Errorf("%s: got Content-Type %q, want application/problem+json", a, got)
	}
	a.decode(t, &p)
	if p.Type == "" || p.Title == "" || p.Detail == "" || p.Status != status {
		t.Errorf("%s: got %+v, want type, title, detail and status", a, p)
	}
	if len(codes) > 0 && !slices.Contains(codes, p.Code) || p.Code == "" {
		t.Errorf("%s: got code %q, want one of %q", a, p.Code, codes)
	}
	for _, internal := range []string{"goroutine", "runtime error", "ConditionalCheckFailed", "dynamodb", ".go:", "context deadline", "dial tcp"} {
		if bytes.Contains(a.body, []byte(internal)) {
			t.Errorf("%s: holds an internal error (%s)", a, internal)
		}
	}
	if status == http.StatusConflict && p.Code == "idempotency_in_progress" && a.header.Get("Retry-After") == "" {
		t.Errorf("%s: no Retry-After", a)
	}
	return p
}

// page is a list.
type page[T any] struct {
	Object     string
	Data       []T
	NextCursor *string `json:"next_cursor"`
}

// list reads a list and checks its form.
func list[T any](t *testing.T, a answer) page[T] {
	t.Helper()
	a.want(t, http.StatusOK)
	all := a.members(t)
	for _, name := range []string{"object", "data", "next_cursor"} {
		if _, found := all[name]; !found {
			t.Errorf("%s: a list without %s", a, name)
		}
	}
	if len(all) != 3 || string(all["data"]) == "null" {
		t.Errorf("%s: got %d members, want object, data (never null) and next_cursor", a, len(all))
	}
	var p page[T]
	a.decode(t, &p)
	if p.Object != "list" {
		t.Errorf("%s: got object %q, want list", a, p.Object)
	}
	return p
}

// wholeList reads all pages of a list.
func wholeList[T any](t *testing.T, c client, path string) []T {
	t.Helper()
	var all []T
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	next := path
	for range 1000 { // a cursor that leads nowhere must not hang the run
		p := list[T](t, c.get(t, next))
		all = append(all, p.Data...)
		if p.NextCursor == nil {
			return all
		}
		next = path + separator + "cursor=" + url.QueryEscape(*p.NextCursor)
	}
	t.Fatalf("GET %s: the pages don't end", path)
	return nil
}
