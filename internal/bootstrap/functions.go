package bootstrap

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/console"
	"github.com/kessai/kessai/internal/ingress"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/notification"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/outbox/eventbridge"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/stream"
	"github.com/kessai/kessai/internal/telemetry"
	"github.com/kessai/kessai/internal/webhook"
)

// Must ends the process when a function cannot start, with one line that says
// everything that is wrong.
func Must[T any](handler T, err error) T {
	if err != nil {
		slog.New(slog.NewJSONHandler(os.Stdout, nil)).Error("function cannot start", "reason", err.Error())
		os.Exit(1)
	}
	return handler
}

// core reads what every payment function needs. Its faults are in e.
func (e *Environment) core(a account) Core {
	d := e.Durations()
	return Core{
		Payments: payments.New(a.table(e.Required("PAYMENTS_TABLE"))), Providers: e.providers(d), Durations: d,
		LocalEndpoints: e.Optional("LOCAL_ENDPOINTS") == "true",
		Now:            Clock, NewULID: ULIDs(Clock), Meter: &telemetry.Meter{W: os.Stdout, Now: Clock}, Log: telemetry.Logger(os.Stdout, e.LogLevel()),
	}
}

// Inventory is the stock participant's handler.
func Inventory() (inventory.Handler, error) {
	e := ProcessEnvironment()
	a := e.account()
	h := inventory.NewHandler(inventory.New(a.table(e.Required("INVENTORY_TABLE")), Clock))
	return h, e.Err()
}

// Orders is the order participant's handler. The shop's rule about what it
// refuses is its own; without one nothing is refused. ORDER_REJECT_PREFIX makes
// it refuse SKUs that begin so, to try compensation out.
func Orders() (order.Handler, error) {
	e := ProcessEnvironment()
	a := e.account()
	var rule order.Rule
	if prefix := e.Optional("ORDER_REJECT_PREFIX"); prefix != "" {
		rule = order.RefuseSKUsFrom(prefix)
	}
	return order.NewHandler(order.New(a.table(e.Required("ORDERS_TABLE")), Clock, rule)), e.Err()
}

// Notifications is the notification participant's handler.
func Notifications() (notification.Handler, error) {
	e := ProcessEnvironment()
	a := e.account()
	return notification.NewHandler(Notices(a.table(e.Required("NOTIFICATIONS_TABLE")), telemetry.Logger(os.Stdout, e.LogLevel()))), e.Err()
}

// Notices is the notification participant over its table. Its messages are kept,
// and sent by whoever the shop chooses to read them.
func Notices(table store.Table, log *slog.Logger) *notification.Participant {
	return notification.New(notification.Options{
		Table: table, Sender: notification.StoredOnly{}, Now: Clock, Log: log,
		Jitter: func(n int64) int64 { return int64(below(time.Duration(n))) },
	})
}

// API is the merchant API's handler.
func API() (*api.Handler, error) {
	e := ProcessEnvironment()
	a := e.account()
	core, defaultPSP := e.core(a), e.Required("DEFAULT_PSP")
	shop := Shop{
		Checkouts: core.Checkouts(a.starter(e.Required("STATE_MACHINE_ARN")), nil),
		Stock:     inventory.New(a.table(e.Required("INVENTORY_TABLE")), Clock),
		Orders:    order.New(a.table(e.Required("ORDERS_TABLE")), Clock, nil),
		Notices:   Notices(a.table(e.Required("NOTIFICATIONS_TABLE")), core.Log),
	}
	if err := e.Err(); err != nil {
		return nil, err
	}
	core.Webhooks = readers(core.Providers)
	return core.API(core.Charges(), shop, core.Merchants(merchant.PrefixLive), defaultPSP), nil
}

// Authorizer is the handler that tells whose a key is. The operator's keys are
// read at the start, and again when they are old.
func Authorizer(ctx context.Context) (*merchant.Authorizer, error) {
	e := ProcessEnvironment()
	a := e.account()
	table, id, level := a.table(e.Required("PAYMENTS_TABLE")), e.Required("SECRETS_ID"), e.LogLevel()
	if err := e.Err(); err != nil {
		return nil, err
	}
	keys, err := a.renewedOperatorKeys(ctx, id)
	if err != nil {
		return nil, err
	}
	return &merchant.Authorizer{
		Keys: &merchant.Keyring{Store: payments.New(table), Now: Clock, OperatorKeys: keys},
		Log:  telemetry.Logger(os.Stdout, level),
	}, nil
}

// WebhookIngest is the handler of the function URL. Its secrets are read at the
// start, and again when they are old.
func WebhookIngest(ctx context.Context) (*ingress.Handler, error) {
	e := ProcessEnvironment()
	a := e.account()
	core, id, address := e.core(a), e.Required("SECRETS_ID"), e.Address("SIMULATOR_URL")
	if err := e.Err(); err != nil {
		return nil, err
	}
	intake, err := renewedAtStart(ctx, Clock, func(ctx context.Context) (*webhook.Ingest, error) {
		secrets, err := a.webhookSecrets(ctx, id)
		if err != nil {
			return nil, err
		}
		core := core
		core.Webhooks, err = WebhooksOf(secrets, address, core.Durations)
		return core.Ingest(), err
	})
	if err != nil {
		return nil, err
	}
	return ingress.New(ingress.Config{Receiver: renewedIntake{intake}, Now: Clock, Log: core.Log}), nil
}

// renewedIntake takes deliveries in with the secrets that are in force.
type renewedIntake struct{ *renewed[*webhook.Ingest] }

// Receive verifies a delivery and stores its notifications.
func (r renewedIntake) Receive(ctx context.Context, name string, d psp.Delivery) (psp.Acknowledgement, error) {
	return r.get(ctx).Receive(ctx, name, d)
}

// WebhookApply is the handler of the inbox's stream.
func WebhookApply() (*stream.Webhooks, error) {
	e := ProcessEnvironment()
	core := e.core(e.account())
	if err := e.Err(); err != nil {
		return nil, err
	}
	core.Webhooks = readers(core.Providers)
	return &stream.Webhooks{Applier: core.Applier(core.Charges()), Log: core.Log}, nil
}

// readers are the PSPs whose notifications can be read: reading needs no secret.
func readers(providers map[string]psp.Provider) map[string]psp.Webhooks {
	all := map[string]psp.Webhooks{}
	for name, p := range providers {
		if w, ok := p.(psp.Webhooks); ok {
			all[name] = w
		}
	}
	return all
}

// OutboxRelay is the handler of the journal's stream.
func OutboxRelay() (*stream.Outbox, error) {
	e := ProcessEnvironment()
	a := e.account()
	core, bus := e.core(a), e.Required("EVENT_BUS_NAME")
	checkouts := core.Checkouts(a.starter(e.Required("STATE_MACHINE_ARN")), nil)
	relay := &outbox.Relay{Publisher: a.publisher(bus), Sagas: checkouts, Merchants: core.Deliveries()}
	return &stream.Outbox{Carrier: relay, Watch: core.Watch(), Log: core.Log}, e.Err()
}

// EventDelivery is the handler of the bus's rule.
func EventDelivery() (*eventbridge.Deliveries, error) {
	e := ProcessEnvironment()
	core := e.core(e.account())
	return &eventbridge.Deliveries{Deliverer: core.Deliveries()}, e.Err()
}

// SagaStep is the handler of the payment steps of the saga.
func SagaStep() (checkout.Handler, error) {
	e := ProcessEnvironment()
	a := e.account()
	core, stock := e.core(a), a.table(e.Required("INVENTORY_TABLE"))
	return core.SagaStep(inventory.New(stock, Clock)), e.Err()
}

// Reconcile is the handler of the sweep's schedule.
func Reconcile() (*Sweep, error) {
	e := ProcessEnvironment()
	a := e.account()
	core, notices := e.core(a), a.table(e.Required("NOTIFICATIONS_TABLE"))
	core.Webhooks = readers(core.Providers)
	checkouts := core.Checkouts(a.starter(e.Required("STATE_MACHINE_ARN")), Told{Notices(notices, core.Log)})
	return core.Sweep(core.Charges(), checkouts), e.Err()
}

// Console is the handler of the operator's pages.
func Console(ctx context.Context) (*console.Handler, error) {
	e := ProcessEnvironment()
	a := e.account()
	core, id, machine := e.core(a), e.Required("SECRETS_ID"), e.Required("STATE_MACHINE_ARN")
	if err := e.Err(); err != nil {
		return nil, err
	}
	keys, err := a.renewedOperatorKeys(ctx, id)
	if err != nil {
		return nil, err
	}
	return core.Console(core.Checkouts(a.starter(machine), nil), keys, false), nil
}

// renewedOperatorKeys are the operator's keys that are in force.
func (a account) renewedOperatorKeys(ctx context.Context, id string) (func(context.Context) ([]string, error), error) {
	keys, err := renewedAtStart(ctx, Clock, func(ctx context.Context) ([]string, error) { return a.operatorKeys(ctx, id) })
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]string, error) { return keys.get(ctx), nil }, nil
}
