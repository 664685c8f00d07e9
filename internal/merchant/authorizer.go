package merchant

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// Names in an authorizer's context, as the API reads them.
const (
	ContextMerchant = "merchant" // the merchant's id, "" for the operator and for nobody
	ContextRole     = "role"     // a Role, "" for nobody
	ContextFailure  = "failure"  // FailureUnavailable when nobody could tell, else ""
)

// FailureUnavailable says in an authorizer's context that whose the key is could
// not be found out: 503, and not 401.
const FailureUnavailable = "unavailable"

// Authorizer is the Lambda authorizer of the merchant API (HTTP API, payload 2.0,
// simple responses).
//
// It lets every request pass and says in its context who makes it; the API
// answers nobody with 401. API Gateway's own answers to a refusal are no
// problem+json, and 403 where the right one is 401. For the same reason the template
// names no identity source by default: a request without one would be answered by
// API Gateway itself. Without one it cannot cache, so a revoked key ends at once;
// who sets AuthorizerCacheSeconds gives up both for fewer calls.
type Authorizer struct {
	Keys *Keyring
	Log  *slog.Logger
}

// Handle tells who makes the request. It never fails and never refuses.
func (a *Authorizer) Handle(ctx context.Context, request events.APIGatewayV2CustomAuthorizerV2Request) (events.APIGatewayV2CustomAuthorizerSimpleResponse, error) {
	p, err := a.Keys.Authenticate(ctx, bearer(request.Headers))
	failure := ""
	if err != nil && !errors.Is(err, ErrUnknownKey) {
		a.Log.ErrorContext(ctx, "request not authorized", "reason", err.Error())
		failure = FailureUnavailable
	}
	return events.APIGatewayV2CustomAuthorizerSimpleResponse{
		IsAuthorized: true,
		Context:      map[string]any{ContextMerchant: p.MerchantID, ContextRole: string(p.Role), ContextFailure: failure},
	}, nil
}

// bearer is the key of an Authorization header (RFC 6750 section 2.1), "" when
// there is none. The scheme is compared without regard to case.
func bearer(headers map[string]string) string {
	for name, value := range headers {
		if !strings.EqualFold(name, "Authorization") {
			continue
		}
		scheme, key, _ := strings.Cut(strings.Trim(value, " \t"), " ")
		if strings.EqualFold(scheme, "Bearer") {
			return strings.Trim(key, " ")
		}
	}
	return ""
}
