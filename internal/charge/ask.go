package charge

import (
	"context"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// Learn records what a PSP said of p's charge when it was asked, without a due
// date, and does at once what follows from it. It returns the payment after that, or
// the domain's refusal, or the store's error. Safe to repeat.
func (s *Service) Learn(ctx context.Context, p payment.Payment, source journal.Source, c psp.Charge) (payment.Payment, error) {
	if p.Status == payment.StatusAuthorized && c.Status == psp.StatusFailed {
		c.Status = psp.StatusCanceled // what was held lapsed: the answer to a question is no old news
	}
	p, err := s.learn(ctx, p, source, c)
	if err != nil {
		return p, err
	}
	return s.Follow(ctx, p, source), nil
}
