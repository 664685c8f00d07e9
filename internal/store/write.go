package store

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrInvalid says that a write or query is malformed: a caller's mistake, which
// no repeat can heal. Nothing was written.
var ErrInvalid = errors.New("store: invalid request")

// Limits of DynamoDB that a request is held to before it is sent.
const (
	maxPKBytes          = 2048    // partition key, of the table and of IndexDue
	maxSKBytes          = 1024    // sort key
	maxDepth            = 31      // lists and maps within each other; what they hold is the 32nd level
	maxTransactionBytes = 4 << 20 // items of one transaction together
	maxLimit            = 1000    // ours: a page is at most 1 MB there anyway
)

// ValidateWrites is what every adapter asks of the writes of one Write before it
// begins. It returns an error that wraps ErrInvalid, or ErrTooLarge when an item
// that is put is over MaxItemBytes. An item that an Update makes too large is for
// the adapter to refuse.
func ValidateWrites(writes []Write) error {
	if len(writes) == 0 || len(writes) > MaxWrites {
		return fmt.Errorf("%w: %d writes, must be 1 to %d", ErrInvalid, len(writes), MaxWrites)
	}
	total := 0
	seen := make(map[Key]bool, len(writes))
	for i, w := range writes {
		if seen[w.Key] {
			return fmt.Errorf("%w: write %d: key %q is written twice", ErrInvalid, i, w.Key)
		}
		seen[w.Key] = true
		if err := w.validate(); err != nil {
			return fmt.Errorf("%w: write %d of %q: %w", ErrInvalid, i, w.Key, err)
		}
		if w.Kind != Put {
			continue
		}
		size := Size(w.Key, w.Item)
		if size > MaxItemBytes {
			return fmt.Errorf("%w: write %d of %q: %d bytes", ErrTooLarge, i, w.Key, size)
		}
		total += size
	}
	if total > maxTransactionBytes {
		return fmt.Errorf("%w: %d bytes in one transaction", ErrTooLarge, total)
	}
	return nil
}

func (w Write) validate() error {
	if err := w.Key.validate(); err != nil {
		return err
	}
	if err := w.If.validate(0); err != nil {
		return fmt.Errorf("condition: %w", err)
	}
	if w.Kind != Put && w.Item != nil {
		return errors.New("only a put has an item")
	}
	if w.Kind != Update && (w.Set != nil || w.Remove != nil || w.Add != nil) {
		return errors.New("only an update sets, removes or adds")
	}
	switch w.Kind {
	case Put:
		return validateItem(w.Item)
	case Update:
		return w.validateUpdate()
	case Delete:
		return nil
	case Check:
		if w.If.Simplify().Op == OpAlways {
			return errors.New("a check needs a condition")
		}
		return nil
	}
	return fmt.Errorf("unknown kind %d", w.Kind)
}

func (w Write) validateUpdate() error {
	if err := validateItem(w.Set); err != nil {
		return err
	}
	named := make(map[string]bool, len(w.Set)+len(w.Remove)+len(w.Add))
	for name := range w.Set {
		named[name] = true
	}
	changed := func(name string) error {
		if named[name] {
			return fmt.Errorf("attribute %q is changed twice", name)
		}
		named[name] = true
		if name == AttrWriter {
			return errors.New("the writer is stamped by the table")
		}
		return validateName(name)
	}
	for _, name := range w.Remove {
		if err := changed(name); err != nil {
			return err
		}
	}
	for name := range w.Add {
		if err := changed(name); err != nil {
			return err
		}
		if name == AttrDueShard {
			return fmt.Errorf("attribute %q is not a number", name)
		}
	}
	return nil
}

// Validate refuses, wrapping ErrInvalid, a query that no adapter could answer.
// The cursor is judged by Position.
func (q Query) Validate() error {
	key := Key{PK: q.PK, SK: q.SKPrefix}
	switch {
	case q.Index != "" && q.Index != IndexDue:
		return fmt.Errorf("%w: query of index %q", ErrInvalid, q.Index)
	case q.Index == IndexDue && q.SKPrefix != "":
		return fmt.Errorf("%w: query of an index by sort key", ErrInvalid)
	case q.Index == "" && q.AtMost != 0:
		return fmt.Errorf("%w: query of the table by time", ErrInvalid)
	case q.Limit < 1 || q.Limit > maxLimit:
		return fmt.Errorf("%w: query limit %d, must be 1 to %d", ErrInvalid, q.Limit, maxLimit)
	}
	if key.SK == "" {
		key.SK = attrSK // any: an empty prefix is no prefix
	}
	if err := key.validate(); err != nil {
		return fmt.Errorf("%w: query: %w", ErrInvalid, err)
	}
	return nil
}

// Validate refuses, wrapping ErrInvalid, a scan that no adapter could carry out.
// The cursor is judged by Position.
func (s Scan) Validate() error {
	if s.Limit < 1 || s.Limit > maxLimit {
		return fmt.Errorf("%w: scan limit %d, must be 1 to %d", ErrInvalid, s.Limit, maxLimit)
	}
	if err := s.Where.validate(0); err != nil {
		return fmt.Errorf("%w: scan: %w", ErrInvalid, err)
	}
	if err := (Key{PK: attrPK, SK: attrSK + s.SKPrefix}).validate(); err != nil {
		return fmt.Errorf("%w: scan: %w", ErrInvalid, err)
	}
	return nil
}

// Validate refuses, wrapping ErrInvalid, a key that no item can have.
func (k Key) Validate() error {
	if err := k.validate(); err != nil {
		return fmt.Errorf("%w: key %q: %w", ErrInvalid, k, err)
	}
	return nil
}

func (k Key) validate() error {
	if k.PK == "" || k.SK == "" {
		return errors.New("empty key")
	}
	if len(k.PK) > maxPKBytes || len(k.SK) > maxSKBytes {
		return errors.New("key is too long")
	}
	if !utf8.ValidString(k.PK) || !utf8.ValidString(k.SK) {
		return errors.New("key is not UTF-8")
	}
	return nil
}

func (c Condition) validate(depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	if c.Attr != "" {
		if err := validateName(c.Attr); err != nil {
			return err
		}
	}
	switch c.Op {
	case OpAlways, OpExists, OpAbsent:
		return nil
	case OpEqual, OpNotEqual:
		return c.validateOperand(true)
	case OpLess, OpAtLeast:
		return c.validateOperand(false)
	case OpAll, OpAny:
		for _, term := range c.Terms {
			if err := term.validate(depth + 1); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("unknown operator %d", c.Op)
}

func (c Condition) validateOperand(boolAllowed bool) error {
	if c.Attr == "" {
		return errors.New("comparison without an attribute")
	}
	switch v := c.Value.(type) {
	case int64:
		return nil
	case string:
		return validateValue(v, 0)
	case bool:
		if boolAllowed {
			return nil
		}
	}
	return fmt.Errorf("attribute %q compared with a %T", c.Attr, c.Value)
}

func validateItem(item Item) error {
	for name, v := range item {
		if err := validateName(name); err != nil {
			return err
		}
		if err := validateValue(v, 0); err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
		switch name {
		case AttrDueAt, AttrExpiresAt:
			if _, ok := v.(int64); !ok {
				return fmt.Errorf("attribute %q is a %T, must be int64", name, v)
			}
		case AttrDueShard:
			s, ok := v.(string)
			if !ok || s == "" || len(s) > maxPKBytes {
				return fmt.Errorf("attribute %q must be a string of 1 to %d bytes", name, maxPKBytes)
			}
		}
	}
	return nil
}

func validateName(name string) error {
	switch {
	case name == "":
		return errors.New("empty attribute name")
	case name == attrPK || name == attrSK:
		return fmt.Errorf("attribute %q is part of the key", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("attribute name %q is not UTF-8", name)
	}
	return nil
}

// validateValue refuses what DynamoDB would refuse or, worse, store as something
// else: invalid UTF-8 would be replaced on the way.
func validateValue(v any, depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return errors.New("string is not UTF-8")
		}
		return nil
	case int64, bool:
		return nil
	case []any:
		for _, e := range v {
			if err := validateValue(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for name, e := range v {
			if name == "" || !utf8.ValidString(name) {
				return fmt.Errorf("map key %q is empty or not UTF-8", name)
			}
			if err := validateValue(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("value is a %T, must be string, int64, bool, []any or map[string]any", v)
}
