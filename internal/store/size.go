package store

import "strconv"

// MaxItemBytes is the largest item, key and attribute names included (DynamoDB's
// limit, counted by its rules: see Size).
const MaxItemBytes = 400 << 10

// Overheads of DynamoDB's size rules, see "DynamoDB item sizes and formats" in
// its developer guide.
const (
	documentBytes = 3 // a list or a map
	elementBytes  = 1 // each element of one
	attrPK        = "pk"
	attrSK        = "sk"
)

// Size is the number of bytes an item counts for: names and strings in UTF-8,
// numbers one byte for two digits and one more.
func Size(key Key, item Item) int {
	n := len(attrPK) + len(key.PK) + len(attrSK) + len(key.SK)
	for name, v := range item {
		n += len(name) + valueSize(v)
	}
	return n
}

func valueSize(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case int64:
		return numberSize(v)
	case bool:
		return 1
	case []any:
		n := documentBytes
		for _, e := range v {
			n += elementBytes + valueSize(e)
		}
		return n
	case map[string]any:
		n := documentBytes
		for name, e := range v {
			n += elementBytes + len(name) + valueSize(e)
		}
		return n
	}
	return 0
}

// numberSize counts significant digits only: zeros at the end are free, a minus
// sign costs one byte.
func numberSize(n int64) int {
	var buf [20]byte // "-9223372036854775808"
	digits := strconv.AppendInt(buf[:0], n, 10)
	size := 1
	if n < 0 {
		digits = digits[1:]
		size++
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return size + (len(digits)+1)/2
}

// Clone returns a deep copy that shares nothing with the item; nil stays nil.
func Clone(item Item) Item {
	if item == nil {
		return nil
	}
	return Item(cloneMap(item))
}

func cloneMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for name, v := range m {
		out[name] = cloneValue(v)
	}
	return out
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cloneValue(e)
		}
		return out
	case map[string]any:
		return cloneMap(v)
	}
	return v
}
