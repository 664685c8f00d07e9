package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// rootKey is both halves of the account root's key, which the emulator is started with.
const rootKey = "test"

var rootCredentials = aws.Credentials{AccessKeyID: rootKey, SecretAccessKey: rootKey}

// credentials hands the root's key to the clients of the AWS SDK.
func credentials(context.Context) (aws.Credentials, error) { return rootCredentials, nil }

// wire sends what no client is worth having for, and reads what clients can't: a stream, whose answer is wanted as it
// is because that is what a function gets, and settings that the emulator writes in its own way.
type wire struct {
	url string
}

// upload puts an object into a bucket, or makes the bucket when the path is only its name.
func (w wire) upload(ctx context.Context, path string, content []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, w.url+"/"+path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("upload of %s: %w", path, err)
	}
	if _, err := w.send(request, "s3", content); err != nil {
		return fmt.Errorf("upload of %s: %w", path, err)
	}
	return nil
}

// stream calls an operation of DynamoDB Streams.
func (w wire) stream(ctx context.Context, operation string, in, out any) error {
	return w.call(ctx, "dynamodb", "DynamoDBStreams_20120810."+operation, in, out)
}

// logs calls an operation of CloudWatch Logs.
func (w wire) logs(ctx context.Context, operation string, in, out any) error {
	return w.call(ctx, "logs", "Logs_20140328."+operation, in, out)
}

func (w wire) call(ctx context.Context, service, target string, in, out any) error {
	content, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/", bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", target)
	answer, err := w.send(request, service, content)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	return nil
}

// lambda reads a resource of Lambda's API.
func (w wire) lambda(ctx context.Context, path string, out any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, nil)
	if err != nil {
		return err
	}
	answer, err := w.send(request, "lambda", nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// apigateway changes a resource of API Gateway's API.
func (w wire) apigateway(ctx context.Context, path string, change []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, w.url+path, bytes.NewReader(change))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	_, err = w.send(request, "apigateway", change)
	return err
}

func (w wire) send(request *http.Request, service string, content []byte) ([]byte, error) {
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	request.Header.Set("X-Amz-Content-Sha256", hash)
	err := v4.NewSigner().SignHTTP(request.Context(), rootCredentials, request, hash, service, region, time.Now())
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", answer.Status, body)
	}
	return body, nil
}
