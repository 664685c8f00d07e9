package main

import (
	"fmt"
	"net/http"

	"github.com/kessai/kessai/infra/local/simulator"
)

// newPSP makes the PSP simulator, which posts its webhooks to the function URL's address.
func newPSP(s settings) (handler http.Handler, stop func(), err error) {
	server, err := simulator.New(simulator.Config{
		WebhookURL: s.webhookURL() + "/simulator",
		PublicURL:  s.pspURL(),
		Secret:     simulatorSecret,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("PSP simulator: %w", err)
	}
	return server, func() { server.Close() }, nil
}

// banner says that everything is served. It is the only place where an API key is shown.
func banner(s settings) {
	fmt.Printf(`
ready    API and console  %s   (console under /console, operator key %s)
         webhooks         %s/{psp}
         PSP simulator    %s
         AWS endpoint     %s   (AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s AWS_REGION=%s)

curl -s %s/v1/payments -H 'Authorization: Bearer %s' -H 'Idempotency-Key: first' \
  -d '{"amount":5000,"currency":"JPY","payment_method":"tok_captured","reference":"order-1"}'

Ctrl-C stops everything.
`, s.apiURL(), operatorKey, s.webhookURL(), s.pspURL(), s.awsURL(), rootKey, rootKey, region, s.apiURL(), merchants["alpha"])
}
