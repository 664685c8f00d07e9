package store

// Op is the operator of a Condition.
type Op int

// Operators of a Condition.
const (
	OpAlways   Op = iota // holds
	OpExists             // Attr is present; Attr "" means the item is
	OpAbsent             // Attr is absent; Attr "" means the item is
	OpEqual              // Attr is present and equals Value
	OpNotEqual           // Attr is absent or differs from Value
	OpLess               // Attr is present and below Value
	OpAtLeast            // Attr is present and at or above Value
	OpAll                // every one of Terms holds
	OpAny                // one of Terms holds
)

// Condition is what must hold of an item at the moment of a write. The zero
// value always holds. A missing attribute never equals and never compares.
type Condition struct {
	Op    Op
	Attr  string
	Value any // string, int64 or bool
	Terms []Condition
}

// Absent holds when there is no item with the key.
func Absent() Condition { return Condition{Op: OpAbsent} }

// Exists holds when there is an item with the key.
func Exists() Condition { return Condition{Op: OpExists} }

// HasNo holds when the attribute is absent, or the whole item is.
func HasNo(attr string) Condition { return Condition{Op: OpAbsent, Attr: attr} }

// Has holds when the attribute is present. It is what HasNo denies; the language has
// both, and each store is held to both.
func Has(attr string) Condition { return Condition{Op: OpExists, Attr: attr} }

// Equal holds when the attribute is present and equals v.
func Equal(attr string, v any) Condition { return Condition{Op: OpEqual, Attr: attr, Value: v} }

// NotEqual holds when the attribute is absent or differs from v.
func NotEqual(attr string, v any) Condition { return Condition{Op: OpNotEqual, Attr: attr, Value: v} }

// Less holds when the attribute is present and below v.
func Less(attr string, v int64) Condition { return Condition{Op: OpLess, Attr: attr, Value: v} }

// AtLeast holds when the attribute is present and at or above v.
func AtLeast(attr string, v int64) Condition { return Condition{Op: OpAtLeast, Attr: attr, Value: v} }

// All holds when every term does.
func All(terms ...Condition) Condition { return Condition{Op: OpAll, Terms: terms} }

// Any holds when at least one term does.
func Any(terms ...Condition) Condition { return Condition{Op: OpAny, Terms: terms} }
