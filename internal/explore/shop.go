package explore

import (
	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/checkout"
)

// Shop is what a scenario with checkouts needs.
type Shop struct {
	Stock int64
}

type shop struct{}

func newShop(*world, bootstrap.Core) *shop { return &shop{} }

func (w *world) checkouts(core bootstrap.Core) *checkout.Service { return core.Checkouts(nil, nil) }

func (s *shop) digest(h uint64) uint64 { return h }

func (s *shop) checkEnd(*world, recovery) {}

func (w *world) runExecutions() {}

func (w *world) carry() {}
