package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kessai/kessai/infra"
	"github.com/kessai/kessai/infra/local/statemachine"
	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/notification"
	orders "github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store/memory"
)

// shop is a world with checkouts: their participants, and the deployed state
// machine, whose executions run when they are started.
type shop struct {
	*world
	checkouts *checkout.Service
	stock     *inventory.Participant
	orders    *orders.Participant
	notices   *notification.Participant
	machine   *statemachine.Machine
	asleep    bool // executions that are started do not run
	starts    int
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{world: newWorld(t)}
	s.stock = inventory.New(memory.New(memory.Options{Now: s.clock.now}), s.clock.now)
	s.orders = orders.New(memory.New(memory.Options{Now: s.clock.now}), s.clock.now, orders.RefuseSKUsFrom("reject-"))
	log := slog.New(slog.NewJSONHandler(s.logs, nil))
	s.notices = notification.New(notification.Options{
		Table: memory.New(memory.Options{Now: s.clock.now}), Sender: notification.StoredOnly{}, Now: s.clock.now,
		Jitter: func(int64) int64 { return 0 }, Log: log,
	})
	var ids atomic.Int64
	s.checkouts = &checkout.Service{
		Store: s.table, Starter: s, Notices: nil, Log: log, Meter: meter{}, Now: s.clock.now,
		Settings: checkout.Settings{
			IdempotencyTTL: idempotencyTTL, InProgressTTL: inProgressTTL, PaymentExpiry: paymentExpiry, ReconcileAfter: time.Minute,
		},
		Policy:  func(string) payment.Policy { return payment.Policy{ReconcileAfter: time.Minute} },
		NewULID: func() string { return fmt.Sprintf("01KDYAK348M9S346Q3D2%06d", 700_000+ids.Add(1)) },
		Spread:  func(d time.Duration) time.Duration { return d },
		Pause:   func(ctx context.Context, _ int) error { return ctx.Err() },
	}
	s.machine = s.load()
	s.config.Checkouts, s.config.CheckoutLists = s.checkouts, s.table
	s.config.Stock, s.config.Orders, s.config.Notifications = s.stock, s.orders, s.notices
	s.api = api.New(s.config)
	return s
}

func (s *shop) load() *statemachine.Machine {
	s.t.Helper()
	saga := checkout.Handler{Saga: &checkout.Saga{Service: s.checkouts, Payments: s.charges, Stock: s.stock}}
	options := statemachine.Options{
		Substitutions: map[string]string{}, Functions: map[string]statemachine.Function{},
		Jitter: func(time.Duration) time.Duration { return 0 },
	}
	for name, invoke := range map[string]func(context.Context, []byte) ([]byte, error){
		"SagaStepFunction": saga.Invoke, "InventoryFunction": inventory.NewHandler(s.stock).Invoke,
		"OrdersFunction": orders.NewHandler(s.orders).Invoke, "NotificationsFunction": notification.NewHandler(s.notices).Invoke,
	} {
		options.Substitutions[name] = name
		options.Functions[name] = func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
			return invoke(ctx, payload)
		}
	}
	m, err := statemachine.Load(infra.CheckoutDefinition, options)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// Start runs an execution to its end, unless executions are asleep.
func (s *shop) Start(ctx context.Context, name string, input checkout.Input) error {
	s.starts++
	if s.asleep {
		return nil
	}
	text, err := json.Marshal(input)
	if err != nil {
		return err
	}
	result, err := s.machine.Run(ctx, name, text)
	if err == nil && result.Status != statemachine.Succeeded {
		s.t.Errorf("execution %s: got %s %s", name, result.Status, result.Cause)
	}
	return err
}

// wake stands in for the relay, once the provider's news has arrived.
func (s *shop) wake(id string) {
	s.t.Helper()
	s.deliver()
	if err := s.checkouts.Wake(s.t.Context(), id); err != nil {
		s.t.Fatal(err)
	}
}

// supply sets the stock of a SKU.
func (s *shop) supply(sku string, available int) {
	s.t.Helper()
	r := s.send(request{method: http.MethodPut, path: "/v1/stock/" + sku, apiKey: alpha, body: fmt.Sprintf(`{"available":%d}`, available)})
	s.want(r, http.StatusOK, "")
}

// waiting is the header of a client that waits for an answer.
func waiting(seconds string) map[string]string { return map[string]string{"prefer": "wait=" + seconds} }

// basket is the body of a checkout of two tees.
func basket(token, more string) string {
	return fmt.Sprintf(`{"items":[{"sku":"tee","quantity":2,"unit_amount":2500}],"currency":"JPY","payment_method":%q,
		"customer":{"email":"a@example.com"}%s}`, token, more)
}

// buy makes a checkout and waits for its end.
func (s *shop) buy(body string) response {
	s.t.Helper()
	r := s.send(request{method: http.MethodPost, path: "/v1/checkouts", apiKey: alpha, body: body, header: waiting("10")})
	s.want(r, http.StatusCreated, "")
	return r
}

// object is a member of the answer that is an object.
func (r response) object(name string) map[string]any {
	o, _ := r.field(name).(map[string]any)
	return o
}
