// Command api is the merchant API: a Lambda function behind an HTTP API.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/bootstrap"
)

func main() { lambda.Start(bootstrap.Must(bootstrap.API()).Handle) }
