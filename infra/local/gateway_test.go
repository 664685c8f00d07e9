package main

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

type (
	httpRequest  = events.APIGatewayV2HTTPRequest
	httpResponse = events.APIGatewayV2HTTPResponse
	authRequest  = events.APIGatewayV2CustomAuthorizerV2Request
	authResponse = events.APIGatewayV2CustomAuthorizerSimpleResponse
)

// recording is a gateway whose functions note the event that they are called with.
type recording struct {
	gateway
	called string // api or console
	event  httpRequest
	asked  *authRequest // nil: the authorizer was not
}

func newRecording() *recording {
	r := &recording{}
	function := func(name string) func(context.Context, httpRequest) (httpResponse, error) {
		return func(_ context.Context, e httpRequest) (httpResponse, error) {
			r.called, r.event = name, e
			return httpResponse{StatusCode: http.StatusAccepted, Headers: map[string]string{"Location": "/x"}, Body: "body"}, nil
		}
	}
	r.api, r.console = function("api"), function("console")
	r.authorize = func(_ context.Context, a authRequest) (authResponse, error) {
		r.asked = &a
		return authResponse{IsAuthorized: true, Context: map[string]any{"merchant": "alpha"}}, nil
	}
	return r
}

func (r *recording) serve(request *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	r.ServeHTTP(answer, request)
	return answer
}

func TestARequestBecomesAnEventOfPayloadFormat2(t *testing.T) {
	r := newRecording()
	request := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:3000/v1/payments/a%2Fb?reference=x&reference=y", strings.NewReader(`{"a":"ü"}`))
	request.Header["Idempotency-Key"] = []string{"one", "two"}
	request.AddCookie(&http.Cookie{Name: "session", Value: "s"})
	answer := r.serve(request)
	e := r.event
	if e.Version != "2.0" || e.RawPath != "/v1/payments/a%2Fb" || e.RawQueryString != "reference=x&reference=y" ||
		e.QueryStringParameters["reference"] != "x,y" || e.RequestContext.HTTP.Method != http.MethodPost {
		t.Errorf("got event %+v, want the path as it was sent, and the query both ways", e)
	}
	if e.Headers["idempotency-key"] != "one,two" || e.Headers["host"] != "127.0.0.1:3000" || e.Headers["cookie"] != "" || len(e.Cookies) != 1 || e.Cookies[0] != "session=s" {
		t.Errorf("got headers %v and cookies %v, want lower-case names, values joined, cookies apart", e.Headers, e.Cookies)
	}
	if e.Body != `{"a":"ü"}` || e.IsBase64Encoded {
		t.Errorf("got body %q, encoded %t, want text as it is", e.Body, e.IsBase64Encoded)
	}
	if a := e.RequestContext.Authorizer; a == nil || a.Lambda["merchant"] != "alpha" || r.asked.Headers["idempotency-key"] != "one,two" {
		t.Errorf("got authorizer %+v, want its context on the event", a)
	}
	if answer.Code != http.StatusAccepted || answer.Header().Get("Location") != "/x" || answer.Body.String() != "body" {
		t.Errorf("got %d %v %q, want the function's answer", answer.Code, answer.Header(), answer.Body)
	}
}

func TestABodyThatIsNoTextTravelsInBase64(t *testing.T) {
	r := newRecording()
	raw := "{\"a\":\"\xff\"}"
	r.serve(httptest.NewRequest(http.MethodPost, "/v1/payments", strings.NewReader(raw)))
	if got, err := base64.StdEncoding.DecodeString(r.event.Body); err != nil || !r.event.IsBase64Encoded || string(got) != raw {
		t.Errorf("got %q, encoded %t, %v, want the bytes in base64", r.event.Body, r.event.IsBase64Encoded, err)
	}
	var delivered events.LambdaFunctionURLRequest
	intake := functionURL(func(_ context.Context, e events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		delivered = e
		return events.LambdaFunctionURLResponse{}, nil
	})
	answer := httptest.NewRecorder()
	intake.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/simulator", strings.NewReader(raw)))
	if !delivered.IsBase64Encoded || delivered.RawPath != "/simulator" || answer.Code != http.StatusOK {
		t.Errorf("got event %+v answered %d, want base64, and 200 for an answer without a status", delivered, answer.Code)
	}
}

func TestAnAnswerInBase64IsDecoded(t *testing.T) {
	r := newRecording()
	body := base64.StdEncoding.EncodeToString([]byte{0, 0xff})
	r.api = func(context.Context, httpRequest) (httpResponse, error) {
		return httpResponse{StatusCode: http.StatusOK, Body: body, IsBase64Encoded: true, Cookies: []string{"a=1", "b=2"}}, nil
	}
	answer := r.serve(httptest.NewRequest(http.MethodGet, "/v1/payments", nil))
	if answer.Body.String() != "\x00\xff" || len(answer.Header().Values("Set-Cookie")) != 2 {
		t.Errorf("got %q and cookies %v, want the bytes and both", answer.Body, answer.Header().Values("Set-Cookie"))
	}
	body = "no base64"
	if answer = r.serve(httptest.NewRequest(http.MethodGet, "/v1/payments", nil)); answer.Code != http.StatusInternalServerError {
		t.Errorf("got %d, want 500 for an answer that cannot be decoded", answer.Code)
	}
}

func TestTheAuthorizerStandsBeforeTheAPIOnly(t *testing.T) {
	for path, want := range map[string]struct {
		function string
		asked    bool
	}{
		"/v1/payments": {"api", true}, "/": {"api", true}, "/consoles": {"api", true}, "/healthz": {"api", false}, "/healthz/x": {"api", true},
		"/console": {"console", false}, "/console/webhooks": {"console", false},
	} {
		r := newRecording()
		r.serve(httptest.NewRequest(http.MethodGet, path, nil))
		if r.called != want.function || (r.asked != nil) != want.asked {
			t.Errorf("%s: got %s, authorizer asked %t, want %s and %t", path, r.called, r.asked != nil, want.function, want.asked)
		}
	}
}

func TestWhatTheAuthorizerRefusesNeverReachesTheAPI(t *testing.T) {
	for name, c := range map[string]struct {
		verdict authResponse
		err     error
		status  int
	}{
		"refused":      {authResponse{}, nil, http.StatusForbidden},
		"unauthorized": {authResponse{IsAuthorized: true}, errors.New("Unauthorized"), http.StatusUnauthorized},
		"failed":       {authResponse{IsAuthorized: true}, errors.New("broken"), http.StatusInternalServerError},
	} {
		r := newRecording()
		r.authorize = func(context.Context, authRequest) (authResponse, error) { return c.verdict, c.err }
		if answer := r.serve(httptest.NewRequest(http.MethodGet, "/v1/payments", nil)); answer.Code != c.status || r.called != "" {
			t.Errorf("%s: got %d, called %q, want %d and no call", name, answer.Code, r.called, c.status)
		}
	}
}

func TestAFunctionThatFailsIs500WithoutItsWords(t *testing.T) {
	r := newRecording()
	r.api = func(context.Context, httpRequest) (httpResponse, error) {
		return httpResponse{}, errors.New("inner words")
	}
	answer := r.serve(httptest.NewRequest(http.MethodGet, "/v1/payments", nil))
	if answer.Code != http.StatusInternalServerError || strings.Contains(answer.Body.String(), "inner") {
		t.Errorf("got %d %s, want 500 in the gateway's own words", answer.Code, answer.Body)
	}
}

func TestWhatIsLargerThanThePayloadReachesNoFunction(t *testing.T) {
	for size, status := range map[int64]int{gatewayPayload: http.StatusAccepted, gatewayPayload + 1: http.StatusRequestEntityTooLarge} {
		r := newRecording()
		answer := r.serve(httptest.NewRequest(http.MethodPost, "/v1/payments", io.LimitReader(spaces{}, size)))
		if answer.Code != status || (r.called != "") != (status == http.StatusAccepted) {
			t.Errorf("%d bytes: got %d, called %q, want %d", size, answer.Code, r.called, status)
		}
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestAFunctionGoesOnWhenItsCallerHasGoneAndHasItsOwnTime(t *testing.T) {
	r := newRecording()
	gone, leave := context.WithCancel(t.Context())
	leave()
	alive := false
	r.api = func(ctx context.Context, _ httpRequest) (httpResponse, error) {
		_, bounded := ctx.Deadline()
		alive = ctx.Err() == nil && bounded
		return httpResponse{StatusCode: http.StatusOK}, nil
	}
	r.serve(httptest.NewRequest(http.MethodGet, "/v1/payments", nil).WithContext(gone))
	if !alive {
		t.Error("the function's context ended with its caller's, or has no end of its own")
	}
}
