package api

import (
	"context"
	"net/http"
	"time"

	"github.com/kessai/kessai/internal/outbox"
)

const pathResend = pathEvents + "/resend"

// Recovery sends events again that may not have got out.
type Recovery interface {
	// Resend opens a gap, or merges it into the one that is open.
	Resend(ctx context.Context, r outbox.Request, g outbox.Gap) (work outbox.Recovery, replayed bool, err error)
	// Last is the work that was asked for last, or outbox.ErrNoRecovery.
	Last(ctx context.Context) (outbox.Recovery, error)
}

// resend is the body of an operator's request for a time.
type resend struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// resendView is how far the events of a time are sent again.
type resendView struct {
	Object    string     `json:"object"`
	From      time.Time  `json:"from"`
	To        time.Time  `json:"to"`
	Status    string     `json:"status"`
	Events    int64      `json:"events"`
	NextAt    *time.Time `json:"next_at"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
}

func viewResend(r outbox.Recovery) resendView {
	v := resendView{
		Object: "resend", From: r.From.UTC(), To: r.To.UTC(), Status: "pending", Events: r.Sent, NextAt: unlessZero(r.DueAt),
		CreatedAt: r.OpenedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
	switch {
	case r.Done():
		v.Status = "completed"
	case r.Pages > 0:
		v.Status = "running"
	}
	return v
}

// resendEvents asks for the events of a time to be sent again. The sweep does it.
func (h *Handler) resendEvents(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	body := resend{From: f.text("from", required, ruleInstant), To: f.text("to", required, ruleInstant)}
	gap := outbox.Gap{From: instant(body.From), To: instant(body.To)}
	switch {
	case len(*f.faults) > 0:
	case !gap.From.Before(gap.To):
		f.fault("from", "must be before to")
	case gap.To.After(h.Now()):
		f.fault("to", "must not be in the future")
	case gap.To.Sub(gap.From) > maxPeriod:
		f.fault("from", "must be at most 90 days before to")
	}
	if err := f.done(); err != nil {
		return answer{}, err
	}
	print, err := fingerprint(body)
	if err != nil {
		return answer{}, err
	}
	work, replayed, err := h.Recovery.Resend(ctx, outbox.Request{Scope: c.scope(), Fingerprint: print}, gap)
	if err != nil {
		return answer{}, err
	}
	a, err := accepted(viewResend(work), pathResend)
	if err != nil {
		return answer{}, err
	}
	return a.replayed(replayed), nil
}

func (h *Handler) getResend(ctx context.Context, _ *call) (answer, error) {
	work, err := h.Recovery.Last(ctx)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, viewResend(work))
}
