// Command webhook-apply applies notifications as the inbox's stream brings them.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/bootstrap"
)

func main() { lambda.Start(bootstrap.Must(bootstrap.WebhookApply()).Handle) }
