package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/store/dynamo"
	"github.com/kessai/kessai/internal/store/payments"
)

// Keys of a run on this machine. They are public, as everything here is bound to the loopback address.
const (
	operatorKey     = "sk_test_operator"
	simulatorSecret = "whsec_a2Vzc2FpLWxvY2FsLXNpbXVsYXRvci1zZWNyZXQ="
	stripeSecret    = "whsec_local_stripe"
	adyenHMACKey    = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	adyenAccount    = "KessaiTest"
)

// merchants by id, with their keys.
var merchants = map[string]string{"alpha": "sk_test_alpha", "beta": "sk_test_beta"}

// seed makes the merchants, and puts the secrets of a run in the place of the generated and empty ones, before any
// function has started.
func seed(ctx context.Context, s settings, deployed stack) error {
	table := dynamo.New(dynamo.NewClient(dynamo.Config{
		Region: region, AccessKeyID: rootKey, SecretAccessKey: rootKey, Endpoint: s.awsURL(),
	}), deployed.outputs["PaymentsTableName"], dynamo.Options{})
	keys := &merchant.Service{Store: payments.New(table), Now: bootstrap.Clock}
	for id, key := range merchants {
		if err := keys.Seed(ctx, id, key, merchant.RoleMerchant); err != nil {
			return fmt.Errorf("merchant %s: %w", id, err)
		}
	}
	return seedSecrets(ctx, s, deployed)
}

func seedSecrets(ctx context.Context, s settings, deployed stack) error {
	client := secretsmanager.New(secretsmanager.Options{Region: region, BaseEndpoint: aws.String(s.awsURL()), Credentials: aws.CredentialsProviderFunc(credentials)})
	secrets := map[string]any{
		"OperatorSecretArn": map[string]string{"operator_key": operatorKey},
		"WebhookSecretArn": map[string]any{"webhooks": map[string]any{
			"simulator": map[string]string{"current": simulatorSecret},
			"stripe":    map[string]string{"current": stripeSecret},
			"adyen":     map[string]string{"current": adyenHMACKey, "merchant_account": adyenAccount},
		}},
	}
	for output, value := range secrets {
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("secret %s: %w", output, err)
		}
		_, err = client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: aws.String(deployed.outputs[output]), SecretString: aws.String(string(text))})
		if err != nil {
			return fmt.Errorf("secret %s: %w", output, err)
		}
	}
	return nil
}
