package dynamo

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Config is what a client needs to know. On Lambda all but Endpoint come from the
// function's environment.
type Config struct {
	Region          string
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string // of temporary credentials, else ""
	Endpoint        string // "" for AWS
}

// Time-outs of one attempt. DynamoDB answers within tens of milliseconds; what
// takes this long is lost, and sending it again is cheaper than waiting.
const (
	dialTimeout    = time.Second
	attemptTimeout = 3 * time.Second
	// idleTimeout is below the load balancers' own, so that a request rarely meets a
	// connection that is being closed.
	idleTimeout = 45 * time.Second
	// idleConns are kept for the requests of one instance at the same time.
	idleConns = 64
)

// NewClient returns a client for New. It never sends a request twice by itself:
// Table does, and has to know of every answer that was lost.
//
// The configuration is built by hand: searching for credentials in files and at
// addresses, as a default configuration does, costs a start some of its time.
func NewClient(c Config) *dynamodb.Client {
	o := dynamodb.Options{
		Region:      c.Region,
		Credentials: aws.CredentialsProviderFunc(c.credentials),
		HTTPClient:  HTTPClient(),
		Retryer:     aws.NopRetryer{},
	}
	if c.Endpoint != "" {
		o.BaseEndpoint = aws.String(c.Endpoint)
	}
	return dynamodb.New(o)
}

func (c Config) credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID:     c.AccessKeyID,
		SecretAccessKey: c.SecretAccessKey,
		SessionToken:    c.SessionToken,
		Source:          "kessai",
	}, nil
}

// HTTPClient is how the product calls AWS: short time-outs, no redirects. The
// clients of the other services use it too.
func HTTPClient() *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Client{
		Timeout: attemptTimeout,
		Transport: readOnlyBodies{&http.Transport{
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: dialTimeout,
			IdleConnTimeout:     idleTimeout,
			MaxIdleConns:        idleConns,
			MaxIdleConnsPerHost: idleConns,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// readOnlyBodies hides WriteTo of request bodies. The SDK closes a request's body
// as soon as the response begins, and a closed body's WriteTo fails where its Read
// ends. net/http, which may just be making sure that the body has ended, takes that
// for a failed request and cuts the connection: a fast answer would be lost.
type readOnlyBodies struct{ next http.RoundTripper }

func (b readOnlyBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r = r.WithContext(r.Context()) // a copy: the caller's stays as it is
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return b.next.RoundTrip(r)
}
