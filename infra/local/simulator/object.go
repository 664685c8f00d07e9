package simulator

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// maxAmount is the largest amount in minor units: twelve digits, the field's
// width in card messages.
const maxAmount = 999_999_999_999

// Bounds on texts, in bytes.
const (
	maxText    = 255  // references, tokens and keys
	maxAddress = 2048 // what browsers agree to take
)

// object is a decoded JSON object. Its names are case-sensitive, which they
// would not be in a struct.
type object map[string]json.RawMessage

// decodeObject reads one JSON object; an empty body is an empty object.
func decodeObject(body []byte) (object, *refusal) {
	fields := object{}
	if len(bytes.TrimSpace(body)) == 0 {
		return fields, nil
	}
	if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, &refusal{status: http.StatusBadRequest, code: "body_invalid", message: "The body must be one JSON object in UTF-8."}
	}
	return fields, nil
}

// canonical is the object with order and white space taken out, to compare
// requests by.
func (o object) canonical() string {
	text, err := json.Marshal(o)
	if err != nil { // every member was decoded from valid JSON
		panic(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err)
	}
	if text, err = json.Marshal(value); err != nil {
		panic(err)
	}
	return string(text)
}

func (o object) has(name string) bool {
	raw, found := o[name]
	return found && string(raw) != "null"
}

// text is a string member of at most limit bytes, "" when it is absent or null.
func (o object) text(name string, limit int) (string, *refusal) {
	if !o.has(name) {
		return "", nil
	}
	var value string
	if json.Unmarshal(o[name], &value) != nil || len(value) > limit {
		return "", invalid(name, "must be a string of at most "+strconv.Itoa(limit)+" bytes")
	}
	return value, nil
}

// integer is a member between low and high, without fraction or exponent, and
// otherwise when it is absent or null.
func (o object) integer(name string, low, high, otherwise int64) (int64, *refusal) {
	if !o.has(name) {
		return otherwise, nil
	}
	value, err := strconv.ParseInt(string(o[name]), 10, 64)
	if err != nil || value < low || value > high {
		return 0, invalid(name, "must be an integer from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
	}
	return value, nil
}

// boolean is a true or false member, and otherwise when it is absent or null.
func (o object) boolean(name string, otherwise bool) (bool, *refusal) {
	if !o.has(name) {
		return otherwise, nil
	}
	value := string(o[name])
	if value != "true" && value != "false" {
		return false, invalid(name, "must be true or false")
	}
	return value == "true", nil
}

func invalid(param, rule string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: "parameter_invalid", message: param + " " + rule + ".", param: param}
}
