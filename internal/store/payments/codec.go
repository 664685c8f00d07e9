package payments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/store"
)

// fields builds an item: what is empty is left out, times are Unix milliseconds.
type fields store.Item

func (f fields) str(name, value string) {
	if value != "" {
		f[name] = value
	}
}

func (f fields) num(name string, value int64) {
	if value != 0 {
		f[name] = value
	}
}

func (f fields) flag(name string, value bool) {
	if value {
		f[name] = true
	}
}

func (f fields) time(name string, value time.Time) {
	if !value.IsZero() {
		f[name] = value.UnixMilli()
	}
}

// reader takes attributes out of an item; what is absent reads as zero, and an
// attribute that it is not asked for stays where it is.
type reader map[string]any

func (r reader) str(name string) string {
	s, _ := r[name].(string)
	return s
}

func (r reader) num(name string) int64 {
	n, _ := r[name].(int64)
	return n
}

func (r reader) flag(name string) bool {
	b, _ := r[name].(bool)
	return b
}

func (r reader) time(name string) time.Time {
	if n, ok := r[name].(int64); ok {
		return time.UnixMilli(n).UTC()
	}
	return time.Time{}
}

func (r reader) sub(name string) reader {
	m, _ := r[name].(map[string]any)
	return m
}

func (r reader) strings(name string) map[string]string {
	m, ok := r[name].(map[string]any)
	if !ok {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[key], _ = value.(string)
	}
	return out
}

// diff is the update that turns before into after, attribute by attribute.
func diff(before, after store.Item) (set store.Item, remove []string) {
	set = store.Item{}
	for name, value := range after {
		if old, ok := before[name]; !ok || !reflect.DeepEqual(old, value) {
			set[name] = value
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			remove = append(remove, name)
		}
	}
	slices.Sort(remove) // the same change is the same write
	return set, remove
}

// document turns a value with JSON tags into a nested attribute.
func document(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return integers(m).(map[string]any), nil
}

// integers replaces the numbers of a decoded document by int64 and drops nulls,
// which an item does not hold.
func integers(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			if value == nil {
				delete(x, key)
				continue
			}
			x[key] = integers(value)
		}
		return x
	case []any:
		for i := range x {
			x[i] = integers(x[i])
		}
		return x
	case json.Number:
		n, err := x.Int64()
		if err != nil {
			return x.String()
		}
		return n
	}
	return v
}
