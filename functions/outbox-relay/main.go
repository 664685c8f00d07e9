// Command outbox-relay carries journal rows to the event bus and wakes sagas.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/bootstrap"
)

func main() { lambda.Start(bootstrap.Must(bootstrap.OutboxRelay()).Handle) }
