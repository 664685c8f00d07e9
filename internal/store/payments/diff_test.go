package payments

import (
	"slices"
	"testing"

	"github.com/kessai/kessai/internal/store"
)

// The same change is the same write, whatever the order of a map.
func TestADifferenceNamesWhatIsGoneInOrder(t *testing.T) {
	before := store.Item{"kept": "x"}
	for _, name := range []string{"f", "b", "h", "a", "g", "c", "e", "d"} {
		before[name] = name
	}
	for range 20 {
		set, gone := diff(before, store.Item{"kept": "x"})
		if want := []string{"a", "b", "c", "d", "e", "f", "g", "h"}; len(set) != 0 || !slices.Equal(gone, want) {
			t.Fatalf("got %v set and %v gone, want none and %v", set, gone, want)
		}
	}
}
