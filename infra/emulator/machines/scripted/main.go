// Command scripted is the function behind every Task of a scenario: it hands what it is called with to the address in
// SCRIPT_URL, and answers or fails as it is told there. It is deployed by package machines alone and is no part of the
// product.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/kessai/kessai/infra/local/statemachine/scenario"
)

func main() { lambda.Start(answer) }

func answer(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("SCRIPT_URL"), bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("ask the script: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the script: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the script: %w", err)
	}
	if response.StatusCode == http.StatusOK {
		return body, nil
	}
	var told scenario.Error
	if err := json.Unmarshal(body, &told); err != nil {
		return nil, fmt.Errorf("ask the script: %s: %w", response.Status, err)
	}
	// The name of the error is the scenario's, where a function of the product has that of a Go type.
	return nil, messages.InvokeResponse_Error{Type: told.Name, Message: told.Message}
}
