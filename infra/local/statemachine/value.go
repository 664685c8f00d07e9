package statemachine

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// maxPayloadBytes is the quota of Step Functions on the input or the output of
// an execution, a state or a task: 256 KiB of UTF-8.
const maxPayloadBytes = 262_144

// number is a JSON number exactly as written, so that an amount of money
// passes through any number of states without being rounded by a float.
type number string

var errTrailingData = errors.New("data after the JSON value")

// decodeValue reads one JSON text into nil, bool, number, string, []any or
// map[string]any. It refuses duplicate names, invalid UTF-8 and trailing data.
// Decoded values are shared between states and never changed in place.
func decodeValue(data []byte) (any, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	v, err := readValue(dec)
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); err == nil {
		return nil, errTrailingData
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return v, nil
}

func readValue(dec *jsontext.Decoder) (any, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case jsontext.KindTrue, jsontext.KindFalse:
		return tok.Bool(), nil
	case jsontext.KindString:
		return tok.String(), nil
	case jsontext.KindNumber:
		return number(tok.String()), nil
	case jsontext.KindBeginArray:
		return readArray(dec)
	case jsontext.KindBeginObject:
		return readObject(dec)
	case jsontext.KindNull, jsontext.KindInvalid, jsontext.KindEndObject, jsontext.KindEndArray:
	}
	return nil, nil // null: the decoder hands out no other kind here
}

func readArray(dec *jsontext.Decoder) (any, error) {
	items := []any{}
	for dec.PeekKind() != jsontext.KindEndArray {
		v, err := readValue(dec)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	_, err := dec.ReadToken()
	return items, err
}

func readObject(dec *jsontext.Decoder) (any, error) {
	fields := map[string]any{}
	for dec.PeekKind() != jsontext.KindEndObject {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := tok.String()
		if fields[name], err = readValue(dec); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return fields, err
}

// encodeValue writes a decoded value compactly, with sorted names and nothing
// escaped that JSON does not require: the bytes which the quota counts.
func encodeValue(v any) ([]byte, error) {
	var buf bytes.Buffer
	if err := writeValue(jsontext.NewEncoder(&buf), v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func writeValue(enc *jsontext.Encoder, v any) error {
	switch v := v.(type) {
	case bool:
		return enc.WriteToken(jsontext.Bool(v))
	case string:
		return enc.WriteToken(jsontext.String(v))
	case number:
		return enc.WriteValue(jsontext.Value(v))
	case []any:
		return writeArray(enc, v)
	case map[string]any:
		return writeObject(enc, v)
	}
	return enc.WriteToken(jsontext.Null)
}

func writeArray(enc *jsontext.Encoder, items []any) error {
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, item := range items {
		if err := writeValue(enc, item); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndArray)
}

func writeObject(enc *jsontext.Encoder, fields map[string]any) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := enc.WriteToken(jsontext.String(name)); err != nil {
			return err
		}
		if err := writeValue(enc, fields[name]); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}
