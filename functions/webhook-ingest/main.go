// Command webhook-ingest takes webhooks of PSPs in, behind a function URL.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/bootstrap"
)

func main() { lambda.Start(bootstrap.Must(bootstrap.WebhookIngest(context.Background())).Handle) }
