// Command reconcile finishes what nobody finished, on a schedule.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/bootstrap"
)

func main() { lambda.Start(bootstrap.Must(bootstrap.Reconcile()).Handle) }
