package api

import (
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/problem"
)

// call is one request on its way through the handler.
type call struct {
	request   *events.APIGatewayV2HTTPRequest
	method    string
	path      string
	route     *route // nil until one is found
	params    map[string]string
	principal merchant.Principal
	key       string // of a POST, its Idempotency-Key
	// For log lines; well-formed, or "".
	paymentID  payment.ID
	checkoutID string
}

func newCall(request events.APIGatewayV2HTTPRequest) *call {
	return &call{request: &request, method: request.RequestContext.HTTP.Method, path: request.RawPath}
}

// template is the path of the route, for log lines. A path that is none of ours is
// not repeated: a client may have written anything into it.
func (c *call) template() string {
	if c.route == nil {
		return "none"
	}
	return c.route.path
}

// authenticate reads who makes the request from the authorizer's context.
func (c *call) authenticate() error {
	context := map[string]any{}
	if a := c.request.RequestContext.Authorizer; a != nil {
		context = a.Lambda
	}
	text := func(name string) string {
		s, _ := context[name].(string)
		return s
	}
	if text(merchant.ContextFailure) != "" {
		return unavailable()
	}
	p := merchant.Principal{MerchantID: text(merchant.ContextMerchant), Role: merchant.Role(text(merchant.ContextRole))}
	switch p.Role {
	case merchant.RoleMerchant:
		if !merchant.ValidID(p.MerchantID) {
			return unauthorized()
		}
	case merchant.RoleOperator:
		p.MerchantID = ""
	default: // a word of another program
		return unauthorized()
	}
	c.principal = p
	return nil
}

func unauthorized() error {
	return problem.New(problem.Unauthorized, "The API key is missing or unknown.")
}

// header is the value of a header, whatever the case of its name, "" for none.
func (c *call) header(name string) string {
	for n, value := range c.request.Headers {
		if strings.EqualFold(n, name) {
			return value
		}
	}
	return ""
}

const headerIdempotencyKey = "Idempotency-Key"

// readKey reads the Idempotency-Key of a POST.
func (c *call) readKey() error {
	value := c.header(headerIdempotencyKey)
	key, err := idempotency.ParseKey(value)
	if err != nil {
		return err
	}
	c.key = key
	return nil
}

// operatorScope is the merchant of the operator's idempotency keys. No merchant
// can have this id.
const operatorScope = "@operator"

// scope is where the request's key counts.
func (c *call) scope() idempotency.Scope {
	owner := c.principal.MerchantID
	if c.principal.Role == merchant.RoleOperator {
		owner = operatorScope
	}
	return idempotency.Scope{MerchantID: owner, Method: c.method, Route: c.route.fill(c.params), Key: c.key}
}

// body is the request's body as the client sent it. What media type the client
// calls it does not matter: it is read as JSON or refused.
func (c *call) body() ([]byte, error) {
	if !c.request.IsBase64Encoded {
		return []byte(c.request.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(c.request.Body)
	if err != nil {
		return nil, invalidJSON()
	}
	return body, nil
}

// query is the request's query, or a problem when it is malformed.
func (c *call) query() (url.Values, error) {
	if c.request.RawQueryString == "" {
		values := url.Values{}
		for name, value := range c.request.QueryStringParameters {
			values.Set(name, value)
		}
		return values, nil
	}
	values, err := url.ParseQuery(c.request.RawQueryString)
	if err != nil {
		return nil, problem.Invalid("query", "is malformed")
	}
	return values, nil
}
