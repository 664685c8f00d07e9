package store

// Change is one committed change of one item, as a stream carries it: at least
// once, in order per key. Old is nil for an insert, New for a removal.
type Change struct {
	Key      Key
	Old, New Item
	Sequence string // rises per key
	Expired  bool   // removed by expiry, not by a write
}
