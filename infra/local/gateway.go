package main

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/oklog/ulid/v2"
)

const (
	// apiTimeout is the API function's time, as in the template.
	apiTimeout = 29 * time.Second
	// webhookTimeout is the webhook intake function's time, as in the template.
	webhookTimeout = 10 * time.Second
	// gatewayPayload is the largest body that API Gateway and a function URL take.
	gatewayPayload = 6 << 20
)

// gateway stands in for the HTTP API: it turns a request into the event of
// payload format 2.0, asks the authorizer, and calls the function.
//
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
type gateway struct {
	authorize func(context.Context, events.APIGatewayV2CustomAuthorizerV2Request) (events.APIGatewayV2CustomAuthorizerSimpleResponse, error)
	api       func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
	console   func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A function goes on when its caller has gone, so the request's own context is not its.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), apiTimeout)
	defer cancel()
	event, ok := httpEvent(w, r)
	if !ok {
		return
	}
	function := g.api
	switch {
	case r.URL.Path == "/console" || strings.HasPrefix(r.URL.Path, "/console/"):
		function = g.console
	case r.URL.Path == "/healthz": // no authorizer on this route
	default:
		if !g.authorized(ctx, w, &event) {
			return
		}
	}
	response, err := function(ctx, event)
	if err != nil {
		gatewayError(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	write(w, answer{response.StatusCode, response.Headers, response.Cookies, response.Body, response.IsBase64Encoded})
}

// authorized asks the authorizer and puts its context on the event.
func (g *gateway) authorized(ctx context.Context, w http.ResponseWriter, event *events.APIGatewayV2HTTPRequest) bool {
	verdict, err := g.authorize(ctx, events.APIGatewayV2CustomAuthorizerV2Request{
		Version: "2.0", Type: "REQUEST", RouteKey: event.RouteKey, RawPath: event.RawPath, RawQueryString: event.RawQueryString,
		Headers: event.Headers, IdentitySource: []string{event.Headers["authorization"]},
		RequestContext: event.RequestContext,
	})
	switch {
	case err != nil && err.Error() == "Unauthorized":
		gatewayError(w, http.StatusUnauthorized, "Unauthorized")
		return false
	case err != nil:
		gatewayError(w, http.StatusInternalServerError, "Internal Server Error")
		return false
	case !verdict.IsAuthorized:
		gatewayError(w, http.StatusForbidden, "Forbidden")
		return false
	}
	event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: verdict.Context}
	return true
}

// gatewayError is an answer of the gateway itself, in its own form.
func gatewayError(w http.ResponseWriter, status int, message string) {
	write(w, answer{status, map[string]string{"content-type": "application/json"}, nil, `{"message":"` + message + `"}`, false})
}

// httpEvent is the request as the gateway hands it to a function.
func httpEvent(w http.ResponseWriter, r *http.Request) (events.APIGatewayV2HTTPRequest, bool) {
	body, encoded, ok := readBody(w, r)
	if !ok {
		return events.APIGatewayV2HTTPRequest{}, false
	}
	event := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "$default", RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery,
		Headers: headers(r), QueryStringParameters: query(r), Body: body, IsBase64Encoded: encoded,
	}
	for _, cookie := range r.Cookies() {
		event.Cookies = append(event.Cookies, cookie.Name+"="+cookie.Value)
	}
	event.RequestContext.RequestID = ulid.Make().String()
	event.RequestContext.Stage = "$default"
	event.RequestContext.HTTP = events.APIGatewayV2HTTPRequestContextHTTPDescription{
		Method: r.Method, Path: r.URL.EscapedPath(), Protocol: r.Proto, SourceIP: "127.0.0.1", UserAgent: r.UserAgent(),
	}
	return event, true
}

// functionURL stands in for a Lambda function URL, whose event is nearly the same.
type functionURL func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error)

func (f functionURL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), webhookTimeout)
	defer cancel()
	body, encoded, ok := readBody(w, r)
	if !ok {
		return
	}
	event := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery, Headers: headers(r),
		QueryStringParameters: query(r), Body: body, IsBase64Encoded: encoded,
	}
	event.RequestContext.RequestID = ulid.Make().String()
	event.RequestContext.HTTP = events.LambdaFunctionURLRequestContextHTTPDescription{
		Method: r.Method, Path: r.URL.EscapedPath(), Protocol: r.Proto, SourceIP: "127.0.0.1", UserAgent: r.UserAgent(),
	}
	response, err := f(ctx, event)
	if err != nil {
		gatewayError(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	write(w, answer{response.StatusCode, response.Headers, response.Cookies, response.Body, response.IsBase64Encoded})
}

// readBody is the body as an event holds it: as it is when it is text, else in base64.
func readBody(w http.ResponseWriter, r *http.Request) (body string, encoded, ok bool) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, gatewayPayload))
	if err != nil {
		gatewayError(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return "", false, false
	}
	if !utf8.Valid(raw) {
		return base64.StdEncoding.EncodeToString(raw), true, true
	}
	return string(raw), false, true
}

// headers are lower-cased, and several of one name are joined by commas.
func headers(r *http.Request) map[string]string {
	all := map[string]string{"host": r.Host}
	for name, values := range r.Header {
		if name == "Cookie" {
			continue
		}
		all[strings.ToLower(name)] = strings.Join(values, ",")
	}
	return all
}

func query(r *http.Request) map[string]string {
	values := r.URL.Query()
	if len(values) == 0 {
		return nil
	}
	all := make(map[string]string, len(values))
	for name, several := range values {
		all[name] = strings.Join(several, ",")
	}
	return all
}

// answer is a function's response.
type answer struct {
	status  int
	headers map[string]string
	cookies []string
	body    string
	encoded bool
}

func write(w http.ResponseWriter, a answer) {
	body := []byte(a.body)
	if a.encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(a.body); err != nil {
			gatewayError(w, http.StatusInternalServerError, "Internal Server Error")
			return
		}
	}
	for name, value := range a.headers {
		w.Header().Set(name, value)
	}
	for _, cookie := range a.cookies {
		w.Header().Add("Set-Cookie", cookie)
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // the caller may have gone
}
