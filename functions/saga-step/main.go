// Command saga-step is the payment side of the order saga.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/bootstrap"
)

func main() { lambda.Start(bootstrap.Must(bootstrap.SagaStep())) }
