package explore

import (
	"testing"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/storetest"
)

func TestTheTableKeepsTheContractOfAllTables(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Table { return newTable() })
}
