package simulator_test

import (
	"testing"

	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestAdapterKeepsTheContract(t *testing.T) { psptest.Run(t, newHarness) }
