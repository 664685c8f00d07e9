package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/kessai/kessai/infra/local/simulator"
	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/ingress"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/notification"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/outbox/eventbridge"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/stream"
	"github.com/kessai/kessai/internal/telemetry"
)

// product is every function of the product in one process.
type product struct {
	api       http.Handler
	webhooks  http.Handler
	simulator *simulator.Server
	sweeper   *bootstrap.Sweep
	notices   func(context.Context, []byte) ([]byte, error) // the notifications function
	table     *memory.Table
	saga      *saga
	bus       *bus
	every     time.Duration
	log       *slog.Logger
}

func newProduct(ctx context.Context, s settings) (*product, error) {
	log := telemetry.Logger(os.Stderr, s.environment.LogLevel())
	table := memory.New(memory.Options{Now: bootstrap.Clock, OnFailure: func(name string, c store.Change, err error) {
		log.ErrorContext(ctx, "change given up", "subscription", name, "key", c.Key.String(), "reason", err.Error())
	}})
	core, err := newCore(s, table, log)
	if err != nil {
		return nil, err
	}
	stock := inventory.New(memory.New(memory.Options{Now: bootstrap.Clock}), bootstrap.Clock)
	orders := order.New(memory.New(memory.Options{Now: bootstrap.Clock}), bootstrap.Clock, order.RefuseSKUsFrom(rejectPrefix))
	notices := bootstrap.Notices(memory.New(memory.Options{Now: bootstrap.Clock}), log)
	notify := notification.NewHandler(notices).Invoke
	saga, err := newSaga(participants{
		"SagaStepFunction": core.SagaStep(stock).Invoke, "InventoryFunction": inventory.NewHandler(stock).Invoke,
		"OrdersFunction": order.NewHandler(orders).Invoke, "NotificationsFunction": notify,
	})
	if err != nil {
		return nil, err
	}
	checkouts := core.Checkouts(saga, bootstrap.Told{Notices: notices})
	charges := core.Charges()
	deliveries := core.Deliveries()
	bus := newBus((&eventbridge.Deliveries{Deliverer: deliveries}).Handle, log)
	applying := &stream.Webhooks{Applier: core.Applier(charges), Log: log}
	relaying := &stream.Outbox{Carrier: &outbox.Relay{Publisher: bus, Sagas: checkouts, Merchants: deliveries}, Watch: core.Watch(), Log: log}
	table.Subscribe("webhook-apply", dynamo.StreamHandler(applying.Handle))
	table.Subscribe("outbox-relay", dynamo.StreamHandler(relaying.Handle))

	keys := core.Merchants(merchant.PrefixTest)
	if err := seed(ctx, keys); err != nil {
		return nil, err
	}
	sim, err := simulator.New(simulator.Config{
		WebhookURL: loopback(s.webhookPort) + "/simulator", PublicURL: loopback(s.pspPort), Secret: simulatorSecret, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	shop := bootstrap.Shop{Checkouts: checkouts, Stock: stock, Orders: orders, Notices: notices}
	merchantAPI := core.API(charges, shop, keys, "simulator")
	authorizer := &merchant.Authorizer{Log: log, Keys: &merchant.Keyring{Store: core.Payments, Now: core.Now, OperatorKeys: operatorKeys}}
	intake := ingress.New(ingress.Config{Receiver: core.Ingest(), Now: core.Now, Log: log})
	return &product{
		api:      &gateway{authorize: authorizer.Handle, api: merchantAPI.Handle, console: core.Console(checkouts, operatorKeys, true).Handle},
		webhooks: functionURL(intake.Handle), simulator: sim, table: table, saga: saga, bus: bus,
		sweeper: core.Sweep(charges, checkouts), notices: notify, every: s.durations.ReconcileEvery, log: log,
	}, nil
}

func newCore(s settings, table store.Table, log *slog.Logger) (bootstrap.Core, error) {
	webhooks, err := bootstrap.WebhooksOf(map[string]bootstrap.WebhookSecret{
		"simulator": {Current: simulatorSecret}, "stripe": {Current: stripeSecret},
		"adyen": {Current: adyenHMACKey, MerchantAccount: adyenAccount},
	}, loopback(s.pspPort), s.durations)
	if err != nil {
		return bootstrap.Core{}, err
	}
	provider, ok := webhooks["simulator"].(psp.Provider)
	if !ok {
		return bootstrap.Core{}, fmt.Errorf("the simulator's adapter takes no calls")
	}
	return bootstrap.Core{
		Payments: payments.New(table), Providers: map[string]psp.Provider{"simulator": provider}, Webhooks: webhooks, LocalEndpoints: true,
		Durations: s.durations, Now: bootstrap.Clock, NewULID: bootstrap.ULIDs(bootstrap.Clock), Meter: telemetry.Discard{}, Log: log,
	}, nil
}

func seed(ctx context.Context, keys *merchant.Service) error {
	for id, key := range merchants {
		if err := keys.Seed(ctx, id, key, merchant.RoleMerchant); err != nil {
			return err
		}
	}
	return nil
}

func operatorKeys(context.Context) ([]string, error) { return []string{operatorKey}, nil }

// sweepNotices is what the schedule of the notifications function sends, as in the template.
const sweepNotices = `{"command":"sweep"}`

// sweep stands in for the two schedules: the reconciler's, and that of the
// notification participant, whose table is its own.
func (p *product) sweep(ctx context.Context) {
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		p.sweepOnce(ctx)
	}
}

func (p *product) sweepOnce(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	if _, err := p.sweeper.Handle(bounded); err != nil {
		p.log.WarnContext(ctx, "sweep failed", "reason", err.Error())
	}
	if _, err := p.notices(bounded, []byte(sweepNotices)); err != nil {
		p.log.WarnContext(ctx, "sweep of notifications failed", "reason", err.Error())
	}
}

// sweepTimeout is the reconcile function's time, as in the template.
const sweepTimeout = 60 * time.Second

func (p *product) close() {
	p.table.Close()
	p.bus.close()
	p.saga.close()
}
