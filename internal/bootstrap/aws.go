package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseventbridge "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/kessai/kessai/internal/checkout/stepfunctions"
	"github.com/kessai/kessai/internal/outbox/eventbridge"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
)

// account is how a function reaches AWS: from the variables that Lambda sets,
// without the chain that looks for credentials elsewhere and costs start-up time.
type account struct {
	region, keyID, secret, token string
	endpoint                     func(service string) string
}

// account reads it. AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE> point at
// another AWS, as with every AWS SDK.
func (e *Environment) account() account {
	return account{
		region: e.Required("AWS_REGION"), keyID: e.Required("AWS_ACCESS_KEY_ID"), secret: e.Required("AWS_SECRET_ACCESS_KEY"),
		token: e.Optional("AWS_SESSION_TOKEN"),
		endpoint: func(service string) string {
			if own := e.Optional("AWS_ENDPOINT_URL_" + service); own != "" {
				return own
			}
			return e.Optional("AWS_ENDPOINT_URL")
		},
	}
}

func (a account) credentials() aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: a.keyID, SecretAccessKey: a.secret, SessionToken: a.token}, nil
	})
}

// baseEndpoint is nil for AWS itself.
func (a account) baseEndpoint(service string) *string {
	if address := a.endpoint(service); address != "" {
		return &address
	}
	return nil
}

// table is the DynamoDB table whose name is in that variable.
func (a account) table(name string) store.Table {
	client := dynamo.NewClient(dynamo.Config{
		Region: a.region, AccessKeyID: a.keyID, SecretAccessKey: a.secret, SessionToken: a.token, Endpoint: a.endpoint("DYNAMODB"),
	})
	return dynamo.New(client, name, dynamo.Options{})
}

// secret reads a JSON secret. Its text never appears in an error.
func (a account) readSecret(ctx context.Context, id string, into any) error {
	client := secretsmanager.New(secretsmanager.Options{Region: a.region, Credentials: a.credentials(), HTTPClient: dynamo.HTTPClient(), BaseEndpoint: a.baseEndpoint("SECRETS_MANAGER")})
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(id)})
	if err != nil {
		return fmt.Errorf("read secret: %w", err)
	}
	if err := json.Unmarshal([]byte(aws.ToString(out.SecretString)), into); err != nil {
		return fmt.Errorf("secret %s is no JSON of the expected form", id)
	}
	return nil
}

// starter starts executions of a state machine.
func (a account) starter(machine string) *stepfunctions.Starter {
	return &stepfunctions.Starter{Machine: machine, API: sfn.New(sfn.Options{
		Region: a.region, Credentials: a.credentials(), HTTPClient: dynamo.HTTPClient(), BaseEndpoint: a.baseEndpoint("SFN"),
	})}
}

// publisher puts events on a bus.
func (a account) publisher(bus string) *eventbridge.Publisher {
	return &eventbridge.Publisher{Bus: bus, API: awseventbridge.New(awseventbridge.Options{
		Region: a.region, Credentials: a.credentials(), HTTPClient: dynamo.HTTPClient(), BaseEndpoint: a.baseEndpoint("EVENTBRIDGE"),
	})}
}

// secretAge is how old a secret in memory may be: what was rotated is in force
// everywhere after that.
const secretAge = 5 * time.Minute

// renewed holds what is made from secrets and makes it anew when it is old. When
// that fails the old one stays in force: secrets overlap when they are rotated.
type renewed[T any] struct {
	make func(context.Context) (T, error)
	now  func() time.Time

	mu    sync.Mutex
	value T
	made  time.Time
	tried time.Time
}

// renewedAtStart makes the first value at once, so that a missing or empty
// secret stops the function when it starts.
func renewedAtStart[T any](ctx context.Context, now func() time.Time, make func(context.Context) (T, error)) (*renewed[T], error) {
	value, err := make(ctx)
	if err != nil {
		return nil, err
	}
	return &renewed[T]{make: make, now: now, value: value, made: now()}, nil
}

// retrySecret is the pause between attempts to read a secret that cannot be read.
const retrySecret = 10 * time.Second

func (r *renewed[T]) get(ctx context.Context) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if now.Sub(r.made) < secretAge || now.Sub(r.tried) < retrySecret {
		return r.value
	}
	r.tried = now
	if value, err := r.make(ctx); err == nil {
		r.value, r.made = value, now
	}
	return r.value
}
