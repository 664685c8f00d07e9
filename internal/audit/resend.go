package audit

import (
	"context"
	"sync/atomic"

	"github.com/kessai/kessai/internal/payment"
)

// resend sends the events of payments and their checkouts again that never got out:
// what a stream loses when nobody reads it for longer than it remembers.
func (s *Service) resend(ctx context.Context, run Run, met []payment.ID) (int64, error) {
	var sent atomic.Int64
	until := s.Now().Add(-inTransit)
	err := each(met, func(id payment.ID) error {
		p, found, err := s.payment(ctx, string(id))
		if err != nil || !found {
			return err
		}
		for _, subject := range []string{string(id), p.CheckoutID} {
			if subject == "" {
				continue
			}
			n, err := s.Store.Resend(ctx, subject, run.From, until)
			sent.Add(n)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if n := sent.Load(); n > 0 {
		s.Meter.Count(MetricResent, n)
	}
	return sent.Load(), err
}
