package explore

import (
	"context"
	"errors"
	"time"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

// crookedWay is a way to the provider that changes calls and answers.
type crookedWay struct {
	psp.Provider
	create func(ctx context.Context, r psp.CreateRequest) (psp.Charge, error)
	refund func(ctx context.Context, r psp.RefundRequest) (psp.Refund, error)
	cancel func(ctx context.Context, r psp.CancelRequest) (psp.Charge, error)
	lookup func(ctx context.Context, r psp.LookupRequest) (psp.Charge, error)
}

func (c *crookedWay) Create(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
	if c.create == nil {
		return c.Provider.Create(ctx, r)
	}
	return c.create(ctx, r)
}

func (c *crookedWay) Refund(ctx context.Context, r psp.RefundRequest) (psp.Refund, error) {
	if c.refund == nil {
		return c.Provider.Refund(ctx, r)
	}
	return c.refund(ctx, r)
}

func (c *crookedWay) Cancel(ctx context.Context, r psp.CancelRequest) (psp.Charge, error) {
	if c.cancel == nil {
		return c.Provider.Cancel(ctx, r)
	}
	return c.cancel(ctx, r)
}

func (c *crookedWay) Lookup(ctx context.Context, r psp.LookupRequest) (psp.Charge, error) {
	if c.lookup == nil {
		return c.Provider.Lookup(ctx, r)
	}
	return c.lookup(ctx, r)
}

func unknown(err error) bool {
	return err != nil && !errors.Is(err, psp.ErrNotFound) && psp.OutcomeOf(err) == psp.OutcomeUnknown
}

// pspMutants are defects of how the provider is called and believed.
func pspMutants() []Mutant {
	return []Mutant{
		{Name: "new_key_on_retry", Scenario: "pay retry clock", Faults: 1, Killer: []string{"S-KEY-STABLE", "S-CHARGE-ONCE"}, Provider: newKey},
		{Name: "new_key_in_the_call", Scenario: "pay", Faults: 1, Killer: []string{"S-KEY-STABLE", "S-CHARGE-ONCE"}, Provider: newKeyAtOnce},
		{
			Name: "time_out_is_decline", Scenario: "pay", Faults: 1, Killer: []string{"S-FAILED-MEANS-DECLINED", "L-NO-LOST-MONEY"},
			Provider: func(_ *world, p psp.Provider) psp.Provider {
				return &crookedWay{Provider: p, create: func(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
					c, err := p.Create(ctx, r)
					if unknown(err) {
						return psp.Charge{PaymentID: r.PaymentID, Status: psp.StatusFailed, Amount: r.Amount, Decline: &psp.Decline{Code: "timeout"}}, nil
					}
					return c, err
				}}
			},
		},
		{
			Name: "time_out_is_refusal", Scenario: "pay", Faults: 1, Killer: []string{"S-FAILED-MEANS-DECLINED", "L-NO-LOST-MONEY"},
			Provider: func(_ *world, p psp.Provider) psp.Provider {
				return &crookedWay{Provider: p, create: func(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
					c, err := p.Create(ctx, r)
					if unknown(err) {
						return c, &psp.Error{Operation: "create", Outcome: psp.OutcomeRejected}
					}
					return c, err
				}}
			},
		},
		{
			Name: "time_out_is_success", Scenario: "pay", Faults: 1, Killer: []string{"S-NO-PHANTOM"},
			Provider: func(_ *world, p psp.Provider) psp.Provider {
				return &crookedWay{Provider: p, create: func(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
					c, err := p.Create(ctx, r)
					if unknown(err) {
						return psp.Charge{PaymentID: r.PaymentID, Reference: "ch_000001", Status: psp.StatusCaptured, Amount: r.Amount, Captured: r.Amount.Minor}, nil
					}
					return c, err
				}}
			},
		},
		{
			Name: "refund_time_out_is_failure", Scenario: "refund refund webhook", Faults: 1, Killer: []string{"S-NO-PHANTOM", "S-REFUND-BOUND"},
			Provider: func(_ *world, p psp.Provider) psp.Provider {
				return &crookedWay{Provider: p, refund: func(ctx context.Context, r psp.RefundRequest) (psp.Refund, error) {
					f, err := p.Refund(ctx, r)
					if unknown(err) {
						return psp.Refund{RefundID: r.RefundID, Reference: "rf_none", Amount: r.Amount.Minor, Status: psp.RefundFailed}, nil
					}
					return f, err
				}}
			},
		},
	}
}

// followUpMutants are defects of the calls after the first, and of the rules when to make them.
func followUpMutants() []Mutant {
	return []Mutant{
		{
			Name: "refund_with_a_new_key", Scenario: "refund key window", Faults: 1, Killer: []string{"S-KEY-STABLE", "S-REFUND-BOUND"},
			Provider: func(w *world, p psp.Provider) psp.Provider {
				return &crookedWay{Provider: p, refund: func(ctx context.Context, r psp.RefundRequest) (psp.Refund, error) {
					r.Key += w.time().Format("150405")
					return p.Refund(ctx, r)
				}}
			},
		},
		{
			Name: "void_not_sent", Scenario: "action cancel repeat", Killer: []string{"S-CANCEL-MEANS-NO-CHARGE"},
			Provider: func(_ *world, p psp.Provider) psp.Provider {
				return &crookedWay{Provider: p, cancel: func(ctx context.Context, r psp.CancelRequest) (psp.Charge, error) {
					c, err := p.Lookup(ctx, psp.LookupRequest{Reference: r.Reference})
					c.Status, c.RedirectURL = psp.StatusCanceled, ""
					return c, err
				}}
			},
		},
		{
			Name: "no_look_up", Scenario: "pay reconciler", Faults: 1, Killer: []string{"L-NO-LOST-MONEY", "S-CANCEL-MEANS-NO-CHARGE"},
			Provider: func(_ *world, p psp.Provider) psp.Provider {
				return &crookedWay{Provider: p, lookup: func(context.Context, psp.LookupRequest) (psp.Charge, error) {
					return psp.Charge{}, psp.ErrNotFound
				}}
			},
		},
		{
			Name: "silence_is_proof", Scenario: "cancel in flight", Faults: 1, Killer: []string{"S-CANCEL-MEANS-NO-CHARGE"},
			Policy: func(p payment.Policy) payment.Policy {
				p.PSPTimeout, p.AuthoritativeLookup = 0, true
				return p
			},
		},
		{
			Name: "key_sent_for_ever", Scenario: "refund key window", Faults: 1, Killer: []string{"S-KEY-WINDOW"},
			Policy: func(p payment.Policy) payment.Policy {
				p.KeyLifetime *= 100
				return p
			},
		},
		{
			Name: "dead_is_forgotten", Scenario: "late capture unheard", Killer: []string{"L-NO-LOST-MONEY", "S-CANCEL-MEANS-NO-CHARGE"},
			Policy: func(p payment.Policy) payment.Policy {
				p.KeyLifetime = 0
				return p
			},
		},
	}
}

// newKey gives every process that sends a charge another key.
func newKey(w *world, p psp.Provider) psp.Provider {
	return &crookedWay{Provider: p, create: func(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
		if w.current == nil || w.current.id > 1 {
			r.Key += "b"
		}
		return p.Create(ctx, r)
	}}
}

// newKeyAtOnce tries again within the call, with another key.
func newKeyAtOnce(_ *world, p psp.Provider) psp.Provider {
	return &crookedWay{Provider: p, create: func(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
		c, err := p.Create(ctx, r)
		if unknown(err) {
			r.Key += "b"
			return p.Create(ctx, r)
		}
		return c, err
	}}
}

// door is a crooked door to payments for webhooks.
type door func(ctx context.Context, id payment.ID, source journal.Source, facts ...payment.Event) (payment.Payment, error)

func (d door) Record(ctx context.Context, id payment.ID, source journal.Source, facts ...payment.Event) (payment.Payment, error) {
	return d(ctx, id, source, facts...)
}

// owner shows everybody every payment.
type owner struct{ charge.Store }

func (o owner) Payment(ctx context.Context, id payment.ID) (payment.Payment, error) {
	p, err := o.Store.Payment(ctx, id)
	p.MerchantID = "m_beta"
	return p, err
}

// flowMutants are defects of the flows around the store and the provider.
func flowMutants() []Mutant {
	return []Mutant{
		{Name: "marked_before_applied", Scenario: "unanswered webhook", Faults: 1, Killer: []string{"L-NO-LOST-MONEY"}, Wire: markFirst},
		{Name: "late_money_ignored", Scenario: "late capture", Killer: []string{"L-NO-LOST-MONEY"}, Wire: func(w *world) {
			next := w.applier.Payments
			w.applier.Payments = door(func(ctx context.Context, id payment.ID, source journal.Source, facts ...payment.Event) (payment.Payment, error) {
				p, err := w.table.Payment(ctx, id)
				if err == nil && p.Status.Dead() {
					return p, nil
				}
				return next.Record(ctx, id, source, facts...)
			})
		}},
		{Name: "last_news_wins", Scenario: "action two webhooks", Killer: []string{"S-TERMINAL-STABLE"}, Wire: lastNewsWins},
		{Name: "error_is_acknowledged", Scenario: "unanswered webhook", Faults: 1, Killer: []string{"L-NO-LOST-MONEY"}, Wire: func(w *world) {
			w.ingest.Inbox = deafInbox{w.ingest.Inbox}
		}},
		{Name: "any_merchant", Scenario: "another merchant", Killer: []string{"S-SCOPE"}, Wire: func(w *world) {
			w.charges.Store = owner{w.charges.Store}
		}},
		{Name: "answer_kept", Scenario: "action cancel repeat", Killer: []string{"S-SECRET", "S-ANSWER-TRUE"}, Answer: func(w *world, p payment.Payment, key string) payment.Payment {
			if kept, ok := w.defect[key].(payment.Payment); ok {
				return kept
			}
			w.defect = with(w.defect, key, any(p))
			return p
		}},
		{Name: "publish_errors_ignored", Scenario: "outbox relay", Faults: 1, Killer: []string{"L-OUTBOX-DELIVERED"}, Relay: func(_ *world, r *outbox.Relay) {
			r.Publisher = carefree{r.Publisher}
		}},
	}
}

// deafInbox acknowledges what it could not store.
type deafInbox struct{ webhook.Inbox }

func (d deafInbox) Receive(ctx context.Context, it webhook.Item) (bool, error) {
	fresh, _ := d.Inbox.Receive(ctx, it)
	return fresh, nil
}

// carefree publishes and does not listen.
type carefree struct{ outbox.Publisher }

func (c carefree) Publish(ctx context.Context, events []outbox.Event) []error {
	return make([]error, len(c.Publisher.Publish(ctx, events)))
}

// markFirst marks a notification as applied before it is.
func markFirst(w *world) {
	next := w.applier.Payments
	w.applier.Payments = door(func(ctx context.Context, id payment.ID, source journal.Source, facts ...payment.Event) (payment.Payment, error) {
		name, eventID, _ := webhook.ParseID(facts[0].Notification)
		it, err := w.table.Item(ctx, name, eventID)
		if err == nil {
			it.Status, it.DueAt = webhook.StatusApplied, time.Time{}
			err = w.table.Save(ctx, it)
		}
		if err != nil {
			return payment.Payment{}, err
		}
		return next.Record(ctx, id, source, facts...)
	})
}

// lastNewsWins makes a payment what the last notification says.
func lastNewsWins(w *world) {
	word := map[payment.EventType]payment.Status{
		payment.EventActionRequired: payment.StatusRequiresAction, payment.EventCaptured: payment.StatusCaptured, payment.EventPending: payment.StatusProcessing,
	}
	next := w.applier.Payments
	w.applier.Payments = door(func(ctx context.Context, id payment.ID, source journal.Source, facts ...payment.Event) (payment.Payment, error) {
		p, err := next.Record(ctx, id, source, facts...)
		if status := word[facts[0].Type]; err == nil && p.Status != status {
			key := store.Key{PK: "PAYMENT#" + string(id), SK: "STATE"}
			w.effect(status, func(w *world) {
				_ = w.rows.Write(ctx, store.Write{Kind: store.Update, Key: key, Set: store.Item{"status": string(status)}})
			})
		}
		return p, err
	})
}

// Mutants are all of them.
func Mutants() []Mutant {
	var all []Mutant
	for _, group := range [][]Mutant{storeMutants(), contentMutants(), pspMutants(), followUpMutants(), flowMutants(), shopMutants(), hookMutants(), cardMutants()} {
		all = append(all, group...)
	}
	return all
}
