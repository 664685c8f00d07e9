package charge

import (
	"context"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// provider is the PSP of p.
func (s *Service) provider(p payment.Payment) psp.Provider {
	if provider := s.Providers[p.PSP]; provider != nil {
		return provider
	}
	return unconfigured(p.PSP)
}

// unconfigured is a PSP that payments remember and this process knows no more:
// nothing is sent to it and nothing is known of it, until it is configured again.
type unconfigured string

var _ psp.Provider = unconfigured("")

func (u unconfigured) unsent(operation string) error {
	return &psp.Error{Operation: operation, Outcome: psp.OutcomeNotSent, Err: ErrUnknownPSP}
}

func (u unconfigured) Name() string { return string(u) }

func (u unconfigured) Capabilities() psp.Capabilities { return psp.Capabilities{} }

func (u unconfigured) Create(context.Context, psp.CreateRequest) (psp.Charge, error) {
	return psp.Charge{}, u.unsent("create")
}

func (u unconfigured) Capture(context.Context, psp.CaptureRequest) (psp.Charge, error) {
	return psp.Charge{}, u.unsent("capture")
}

func (u unconfigured) Cancel(context.Context, psp.CancelRequest) (psp.Charge, error) {
	return psp.Charge{}, u.unsent("cancel")
}

func (u unconfigured) Refund(context.Context, psp.RefundRequest) (psp.Refund, error) {
	return psp.Refund{}, u.unsent("refund")
}

func (u unconfigured) Lookup(context.Context, psp.LookupRequest) (psp.Charge, error) {
	return psp.Charge{}, u.unsent("lookup")
}
