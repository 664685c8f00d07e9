package store

import "fmt"

// BatchError is how the reader of a batch of changes says that only some of them
// failed (a partial batch response). The others count as carried out; each failed
// change, and every later change of its key, is delivered again.
type BatchError struct {
	Failed []string // Sequence of each failed change
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("store: %d changes of the batch failed", len(e.Failed))
}
