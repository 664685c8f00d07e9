package apitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// problemType is what the type of every problem starts with; its code follows.
const problemType = "urn:kessai:problem:"

// bodyFaults are the rules of an answer's body that a JSON Schema can't say.
func bodyFaults(resp *http.Response, body []byte) []string {
	if resp.StatusCode == http.StatusNoContent && len(body) > 0 {
		return []string{"answer: 204 has a body"}
	}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch mediaType {
	case "application/json":
		return textFaults(body)
	case "application/problem+json":
		return append(textFaults(body), problemFaults(resp, body)...)
	}
	return nil
}

// textFaults finds what a lenient reader passes over: another value than one
// object, a name twice, invalid UTF-8, and numbers that are not whole as written.
func textFaults(body []byte) []string {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return []string{"answer: the body is not a JSON object"}
	}
	var faults []string
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return append(faults, fmt.Sprintf("answer: the body is not strict JSON: %v", err))
		}
		if token.Kind() == '0' && strings.ContainsAny(token.String(), ".eE") {
			faults = append(faults, fmt.Sprintf("answer: the number %s at %q is not written as an integer", token, d.StackPointer()))
		}
		if d.StackDepth() == 0 && d.InputOffset() < int64(len(bytes.TrimSpace(body))) {
			return append(faults, "answer: the body goes on after the JSON object")
		}
	}
	return faults
}

// problemFaults compares a problem's members with each other and the headers.
func problemFaults(resp *http.Response, body []byte) []string {
	var problem struct {
		Type string `json:"type"`
		Code string `json:"code"`
	}
	if err := json.Unmarshal(body, &problem); err != nil {
		return []string{fmt.Sprintf("answer: the problem can't be read: %v", err)}
	}
	var faults []string
	if problem.Type != problemType+problem.Code {
		faults = append(faults, fmt.Sprintf("answer: the problem's type is %q, want %q", problem.Type, problemType+problem.Code))
	}
	inProgress := problem.Code == "idempotency_in_progress"
	if resp.StatusCode == http.StatusConflict && inProgress != (resp.Header.Get("Retry-After") != "") {
		faults = append(faults, "answer: a 409 has Retry-After exactly when it is idempotency_in_progress")
	}
	return faults
}
