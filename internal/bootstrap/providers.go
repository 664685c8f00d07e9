package bootstrap

import (
	"context"
	"fmt"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/adyen"
	"github.com/kessai/kessai/internal/psp/simulator"
	"github.com/kessai/kessai/internal/psp/stripe"
)

// Names of the PSPs that webhooks may come from.
const (
	pspSimulator = "simulator"
	pspStripe    = "stripe"
	pspAdyen     = "adyen"
)

// WebhookSecret is what a PSP signs with. Previous is accepted beside Current
// while one is being rotated.
type WebhookSecret struct {
	Current         string `json:"current"`
	Previous        string `json:"previous"`
	MerchantAccount string `json:"merchant_account"` // adyen only
}

func (s WebhookSecret) all() []string {
	if s.Previous == "" {
		return []string{s.Current}
	}
	return []string{s.Current, s.Previous}
}

// Simulated is the PSP simulator's adapter at an address. Without a secret it
// calls, and refuses every webhook.
func Simulated(address string, secret *WebhookSecret, d Durations) (*simulator.Adapter, error) {
	config := simulator.Config{BaseURL: address, Tolerance: d.WebhookTolerance, Timeout: d.PSPTimeout}
	if secret != nil {
		config.Secrets = secret.all()
	}
	return simulator.New(config)
}

// WebhooksOf are the receiving sides of the PSPs. One without a secret is known
// and refuses everything; an empty secret is an error.
func WebhooksOf(secrets map[string]WebhookSecret, simulatorAddress string, d Durations) (map[string]psp.Webhooks, error) {
	all := map[string]psp.Webhooks{pspSimulator: nil, pspStripe: nil, pspAdyen: nil}
	for name, secret := range secrets {
		adapter, err := webhooksOf(name, secret, simulatorAddress, d)
		if err != nil {
			return nil, fmt.Errorf("webhook secret of %s: %w", name, err)
		}
		all[name] = adapter
	}
	return all, nil
}

func webhooksOf(name string, secret WebhookSecret, simulatorAddress string, d Durations) (psp.Webhooks, error) {
	switch name {
	case pspSimulator:
		return Simulated(simulatorAddress, &secret, d)
	case pspStripe:
		return stripe.New(stripe.Config{Secrets: secret.all(), Tolerance: d.WebhookTolerance})
	case pspAdyen:
		return adyen.New(adyen.Config{Keys: secret.all(), MerchantAccount: secret.MerchantAccount})
	}
	return nil, fmt.Errorf("no adapter of that name")
}

// providers are the PSPs that a function may call.
func (e *Environment) providers(d Durations) map[string]psp.Provider {
	all := map[string]psp.Provider{}
	address := e.Address("SIMULATOR_URL")
	if address == "" || e.Err() != nil {
		return all
	}
	adapter, err := Simulated(address, nil, d)
	if err != nil {
		e.fault("SIMULATOR_URL", err.Error())
		return all
	}
	all[pspSimulator] = adapter
	return all
}

// webhookSecrets reads the secrets of all PSPs from Secrets Manager.
func (a account) webhookSecrets(ctx context.Context, id string) (map[string]WebhookSecret, error) {
	var secret struct {
		Webhooks map[string]WebhookSecret `json:"webhooks"`
	}
	err := a.readSecret(ctx, id, &secret)
	return secret.Webhooks, err
}

// operatorKeys reads the operator's keys from Secrets Manager. Previous is
// accepted beside the current one while it is being rotated.
func (a account) operatorKeys(ctx context.Context, id string) ([]string, error) {
	var secret struct {
		Current  string `json:"operator_key"`
		Previous string `json:"previous_operator_key"`
	}
	if err := a.readSecret(ctx, id, &secret); err != nil {
		return nil, err
	}
	if secret.Current == "" {
		return nil, fmt.Errorf("secret %s has no operator_key", id)
	}
	if secret.Previous == "" {
		return []string{secret.Current}, nil
	}
	return []string{secret.Current, secret.Previous}, nil
}
