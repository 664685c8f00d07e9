package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kessai/kessai/infra/local/simulator"
	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/store/dynamo"
	"github.com/kessai/kessai/internal/store/payments"
)

// Keys of a run on this machine. They are public, as everything is published on the loopback address only.
const (
	operatorKey     = "sk_test_operator"
	simulatorSecret = "whsec_a2Vzc2FpLWxvY2FsLXNpbXVsYXRvci1zZWNyZXQ="
)

// merchants by id, with their keys.
var merchants = map[string]string{"alpha": "sk_test_alpha", "beta": "sk_test_beta"}

// tables as env.json names them.
var tables = []string{paymentsTable, "inventory", "orders", "notifications"}

const paymentsTable = "payments"

// Ports inside the container. Only the first is published.
const (
	pspAddress     = ":3002"
	secretsAddress = ":3003"
)

// patience is how long DynamoDB may take to come up beside us.
const patience = time.Minute

// accompany prepares the tables, then serves until ctx ends.
func accompany(ctx context.Context) error {
	environment := bootstrap.ProcessEnvironment()
	config := dynamo.Config{
		Region: "us-east-1", Endpoint: environment.Required("DYNAMODB_URL"),
		AccessKeyID: environment.Required("AWS_ACCESS_KEY_ID"), SecretAccessKey: environment.Required("AWS_SECRET_ACCESS_KEY"),
	}
	publicURL := environment.Required("PSP_URL")
	if err := environment.Err(); err != nil {
		return err
	}
	if err := prepare(ctx, dynamo.NewClient(config)); err != nil {
		return err
	}
	psp, err := simulator.New(simulator.Config{
		// There is no function URL that could take them.
		WebhookURL: "http://127.0.0.1" + secretsAddress + "/webhooks", PublicURL: publicURL, Secret: simulatorSecret,
	})
	if err != nil {
		return fmt.Errorf("PSP simulator: %w", err)
	}
	defer psp.Close()
	failed := make(chan error, 2)
	for address, handler := range map[string]http.Handler{pspAddress: psp, secretsAddress: secrets()} {
		server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		defer func() { _ = server.Close() }()
		go func() { failed <- server.ListenAndServe() }()
	}
	slog.InfoContext(ctx, "ready")
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// prepare makes tables and merchants, those that are not there yet.
func prepare(ctx context.Context, client *dynamodb.Client) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, name := range tables {
		if err := createTable(ctx, client, name); err != nil {
			return err
		}
	}
	keys := &merchant.Service{Store: payments.New(dynamo.New(client, paymentsTable, dynamo.Options{})), Now: bootstrap.Clock}
	for id, key := range merchants {
		if err := keys.Seed(ctx, id, key, merchant.RoleMerchant); err != nil {
			return fmt.Errorf("merchant %s: %w", id, err)
		}
	}
	return nil
}

// createTable tries until DynamoDB answers.
func createTable(ctx context.Context, client *dynamodb.Client, name string) error {
	for {
		err := dynamo.CreateTable(ctx, client, name)
		if _, exists := errors.AsType[*types.ResourceInUseException](err); err == nil || exists {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// secrets answers the one call of Secrets Manager that the functions make, with every secret in one document. It
// refuses to start an execution, so that no function asks AWS for it, and takes the webhooks that have nowhere to go.
func secrets() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks", func(w http.ResponseWriter, r *http.Request) {
		slog.InfoContext(r.Context(), "webhook dropped: sam local has no function URL")
	})
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" {
			http.Error(w, `{"__type":"UnknownOperationException"}`, http.StatusBadRequest)
			return
		}
		document, err := json.Marshal(map[string]any{
			"operator_key": operatorKey,
			"webhooks":     map[string]any{"simulator": map[string]string{"current": simulatorSecret}},
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_ = json.NewEncoder(w).Encode(map[string]string{"Name": "local", "SecretString": string(document)}) // or the caller is gone
	})
	return mux
}
