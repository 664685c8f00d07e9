// Command authorizer tells the HTTP API whose an API key is.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/bootstrap"
)

func main() { lambda.Start(bootstrap.Must(bootstrap.Authorizer(context.Background())).Handle) }
