// Package e2e is the black-box suite: what a merchant, a payment service provider
// and an operator may rely on, checked over HTTP and nothing else. It knows the
// product's addresses and keys, and shares no code with it; signatures are made
// here a second time.
//
// # Running it
//
// Suite checks one running product. The package's own test takes the product's
// addresses from the environment and skips when E2E_BASE is not set; the program
// infra/e2e/run starts a product and runs that test; infra/local runs the suite
// against the one-process product.
//
// A run makes references, keys and SKUs of its own, so that it can be repeated on
// a product that goes on living. Payments it leaves behind come to rest by
// themselves.
//
// # Order
//
// Claims run side by side. Those that set faults of the PSP simulator or hold its
// webhooks back come first, since their switches are the simulator's and not a
// payment's; the one that resets it comes last.
//
// # Time
//
// Nothing is asserted about durations, and nothing sleeps for a fixed time: what
// comes later is awaited up to Target.Patience. What waits for PAYMENT_EXPIRY is
// skipped when that is longer than a minute.
package e2e
