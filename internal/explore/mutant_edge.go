package explore

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// crookedHooks verify in another way.
type crookedHooks struct {
	psp.Webhooks
	verify func(h psp.Webhooks, d psp.Delivery) ([]psp.Notification, error)
}

func (c *crookedHooks) Verify(d psp.Delivery) ([]psp.Notification, error) {
	return c.verify(c.Webhooks, d)
}

func verified(verify func(h psp.Webhooks, d psp.Delivery) ([]psp.Notification, error)) func(*world, psp.Webhooks) psp.Webhooks {
	return func(_ *world, h psp.Webhooks) psp.Webhooks { return &crookedHooks{h, verify} }
}

// hookMutants are defects of who is believed.
func hookMutants() []Mutant {
	const scenario = "forged webhooks"
	killer := []string{"S-EVENT-AUTH"}
	return []Mutant{
		{Name: "unsigned_is_taken", Scenario: scenario, Killer: killer, Webhooks: verified(func(h psp.Webhooks, d psp.Delivery) ([]psp.Notification, error) {
			if d.Header.Get("webhook-signature") == "" {
				return []psp.Notification{{EventID: forgedEvent, Type: "charge.captured", Body: d.Body}}, nil
			}
			return h.Verify(d)
		})},
		{Name: "timestamp_ignored", Scenario: scenario, Killer: killer, Alone: true, Webhooks: verified(func(h psp.Webhooks, d psp.Delivery) ([]psp.Notification, error) {
			if seconds, err := strconv.ParseInt(d.Header.Get("webhook-timestamp"), 10, 64); err == nil {
				d.ReceivedAt = time.Unix(seconds, 0)
			}
			return h.Verify(d)
		})},
		{Name: "any_provider_is_believed", Scenario: scenario, Killer: killer, Webhooks: func(w *world, _ psp.Webhooks) psp.Webhooks {
			return &crookedHooks{&hookPort{w, provider}, func(h psp.Webhooks, d psp.Delivery) ([]psp.Notification, error) { return h.Verify(d) }}
		}},
		{Name: "any_signature_will_do", Scenario: scenario, Killer: killer, Webhooks: verified(func(h psp.Webhooks, d psp.Delivery) ([]psp.Notification, error) {
			if n, err := h.Verify(d); err == nil || d.Header.Get("webhook-signature") == "" {
				return n, err
			}
			return []psp.Notification{{EventID: d.Header.Get("webhook-id"), Body: d.Body}}, nil
		})},
	}
}

// cardMutants are defects of what is kept and told.
func cardMutants() []Mutant {
	const scenario = "card data"
	killer := []string{"S-NO-PAN"}
	return []Mutant{
		{Name: "card_numbers_taken", Scenario: scenario, Killer: killer, Alone: true, Careless: true},
		{Name: "writes_logged", Scenario: scenario, Killer: killer, Alone: true, Table: func(w *world, t store.Table) store.Table {
			return &crooked{Table: t, write: func(ctx context.Context, writes []store.Write) error {
				w.logger().DebugContext(ctx, "write", "items", writes)
				return t.Write(ctx, writes...)
			}}
		}},
		{Name: "method_in_the_journal", Scenario: scenario, Killer: killer, Alone: true, Table: edited(func(w *store.Write) bool {
			if isRow(w) {
				w.Item = maps.Clone(w.Item)
				w.Item["payment_method"] = psptest.TokenCaptured
			}
			return true
		})},
	}
}
