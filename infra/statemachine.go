package infra

import _ "embed"

// CheckoutDefinition is the saga's state machine in the Amazon States Language,
// the file that is deployed. Treat it as read-only.
//
//go:embed statemachines/checkout.asl.json
var CheckoutDefinition []byte
