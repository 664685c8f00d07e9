// Package apitest holds real requests and answers to the OpenAPI document, so
// that what is described and what is served can't drift apart.
package apitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	openapi "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	openapierrors "github.com/pb33f/libopenapi-validator/errors"

	"github.com/kessai/kessai/infra"
)

// maxShownBody is how much of a body a failure shows, in bytes: a whole payment
// with a few refunds, and not a whole page of a list.
const maxShownBody = 4 << 10

// Validator reports every request and answer that the document does not allow
// as an error of its test.
type Validator struct {
	t        testing.TB
	document openapi.Validator
}

// New returns a Validator that reports to t. The document is read and compiled
// once per process, which takes a fraction of a second; after that New is free.
// It fails t at once when the document can't be compiled.
func New(t testing.TB) *Validator {
	t.Helper()
	document, err := compile()
	if err != nil {
		t.Fatalf("compile the OpenAPI document: %v", err)
	}
	return &Validator{t: t, document: document}
}

// Check reports an error when the document does not allow the answer: its path,
// method or status is not described, a required header is missing, or its body
// has a field too many or too few or one of a wrong form. The request is held to
// the document only when the answer is 2xx, for a refused request may be wrong.
//
// The request is taken as the client sent it, with the path and the headers of
// the outside. Bodies are read from reqBody and respBody, never from req and
// resp, which stay as they are. It is safe for concurrent use.
func (v *Validator) Check(req *http.Request, reqBody []byte, resp *http.Response, respBody []byte) {
	v.t.Helper()
	faults := v.answerFaults(req, resp, respBody)
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		faults = append(faults, v.requestFaults(req, reqBody)...)
	}
	if len(faults) > 0 {
		v.t.Errorf("%s %s, answered %d, departs from the OpenAPI document:\n\t%s\nrequest: %s\nanswer: %s",
			req.Method, req.URL.Path, resp.StatusCode, strings.Join(faults, "\n\t"), shown(reqBody), shown(respBody))
	}
}

func (v *Validator) answerFaults(req *http.Request, resp *http.Response, body []byte) []string {
	answer := &http.Response{
		StatusCode: resp.StatusCode,
		Header:     resp.Header.Clone(),
		Body:       io.NopCloser(bytes.NewReader(body)),
		Request:    req,
	}
	_, refused := v.document.ValidateHttpResponse(withBody(req, nil), answer)
	return append(faultsOf("answer", refused), bodyFaults(resp, body)...)
}

func (v *Validator) requestFaults(req *http.Request, body []byte) []string {
	_, refused := v.document.ValidateHttpRequestSync(withBody(req, body))
	return faultsOf("request", refused)
}

// withBody returns a copy of req that the caller may read to its end.
func withBody(req *http.Request, body []byte) *http.Request {
	c := req.Clone(req.Context())
	c.Body, c.ContentLength = http.NoBody, 0
	if len(body) > 0 {
		c.Body, c.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return c
}

func faultsOf(side string, refused []*openapierrors.ValidationError) []string {
	var faults []string
	for _, r := range refused {
		if len(r.SchemaValidationErrors) == 0 {
			faults = append(faults, fmt.Sprintf("%s: %s: %s", side, r.Message, r.Reason))
		}
		for _, s := range r.SchemaValidationErrors {
			faults = append(faults, fmt.Sprintf("%s: %s: %s at %q", side, r.Message, s.Reason, s.FieldPath))
		}
	}
	return faults
}

func shown(body []byte) string {
	if len(body) > maxShownBody {
		return string(body[:maxShownBody]) + "…"
	}
	return string(body)
}

// compile reads the document once for all tests of the process.
var compile = sync.OnceValues(func() (openapi.Validator, error) {
	document, err := libopenapi.NewDocument(infra.OpenAPI)
	if err != nil {
		return nil, err
	}
	v, errs := openapi.NewValidator(document, config.WithFormatAssertions(), config.WithRegexCache(&sync.Map{}))
	return v, errors.Join(errs...)
})
