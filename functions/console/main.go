// Command console is the operator's pages, behind the HTTP API.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/bootstrap"
)

func main() { lambda.Start(bootstrap.Must(bootstrap.Console(context.Background())).Handle) }
