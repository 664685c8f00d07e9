// Command event-delivery posts merchants' events to their endpoints.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/bootstrap"
)

func main() { lambda.Start(bootstrap.Must(bootstrap.EventDelivery()).Handle) }
