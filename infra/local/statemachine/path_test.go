package statemachine

import (
	"slices"
	"testing"
)

func TestOnlyPlainPathsAreParsed(t *testing.T) {
	tests := []struct {
		text    string
		context bool
		steps   []string // nil: refused
	}{
		{"$", false, []string{}},
		{"$.a", false, []string{"a"}},
		{"$.a.b_09.c-d._e.AzZ", false, []string{"a", "b_09", "c-d", "_e", "AzZ"}},
		{"$$.Execution.Id", true, []string{"Execution", "Id"}},
		{"$$.Execution.Input", true, []string{"Execution", "Input"}},
		{"$$.Execution.Input.a.b", true, []string{"Execution", "Input", "a", "b"}},
		{"$$.State.RetryCount", true, []string{"State", "RetryCount"}},
		{"", false, nil},
		{"a", false, nil},
		{".a", false, nil},
		{"$a", false, nil},
		{"$.", false, nil},
		{"$..a", false, nil},
		{"$.a.", false, nil},
		{"$.a..b", false, nil},
		{"$.2a", false, nil},
		{"$.-a", false, nil},
		{"$.é", false, nil},
		{"$.a b", false, nil},
		{"$.*", false, nil},
		{"$['a']", false, nil},
		{"$.a[0]", false, nil},
		{"$.a\\.b", false, nil},
		{" $", false, nil},
		{"$$", false, nil},
		{"$$.Execution", false, nil},
		{"$$.Map.Item.Value", false, nil},
		{"$$.Execution.Name.x", false, nil},
		{"$$.execution.id", false, nil},
		{"$$$.a", false, nil},
	}
	for _, tt := range tests {
		p, err := parsePath(tt.text)
		if tt.steps == nil {
			if err == nil {
				t.Errorf("%q: got %v, want an error", tt.text, p.steps)
			}
			continue
		}
		if err != nil || !slices.Equal(p.steps, tt.steps) || p.context != tt.context || p.text != tt.text {
			t.Errorf("%q: got %v %t %v, want %v %t", tt.text, p.steps, p.context, err, tt.steps, tt.context)
		}
	}
}

func TestAPathFindsNullButNothingBelowIt(t *testing.T) {
	data, err := decodeValue([]byte(`{"a": {"b": null, "c": "text", "d": [1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"$": true, "$.a": true, "$.a.b": true, "$.a.b.x": false, "$.a.c.x": false, "$.a.d.x": false, "$.x": false, "$.x.y": false,
	} {
		p, err := parsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := find(data, p.steps); got != want {
			t.Errorf("%s: got found %t, want %t", text, got, want)
		}
	}
}

func TestPlacingNeedsAnObjectOnTheWay(t *testing.T) {
	for _, tt := range []struct{ data, path, want string }{ // "" for a refusal
		{`{}`, "$.a.b", `{"a":{"b":1}}`},
		{`{"a":{"c":2}}`, "$.a.b", `{"a":{"b":1,"c":2}}`},
		{`{"a":{"b":{"c":2}}}`, "$.a.b", `{"a":{"b":1}}`},
		{`{"a":null}`, "$.a", `{"a":1}`},
		{`[2]`, "$", `1`},
		{`null`, "$", `1`},
		{`{"a":null}`, "$.a.b", ""},
		{`{"a":[]}`, "$.a.b", ""},
		{`{"a":{"b":"text"}}`, "$.a.b.c", ""},
		{`null`, "$.a", ""},
		{`"text"`, "$.a", ""},
	} {
		data, err := decodeValue([]byte(tt.data))
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePath(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if placed, ok := place(data, p.steps, number("1")); ok {
			encoded, err := encodeValue(placed)
			if err != nil {
				t.Fatal(err)
			}
			got = string(encoded)
		}
		if got != tt.want {
			t.Errorf("%s in %s: got %s, want %s", tt.path, tt.data, got, tt.want)
		}
	}
}

func TestValuesAreWrittenAsTheyWereRead(t *testing.T) {
	const text = `{"a":[],"b":{},"c":[null,true,false,"<&>é\u0000"],"d":-1.50E+2,"e":123456789012345678901234567890}`
	v, err := decodeValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := encodeValue(v); err != nil || string(got) != text {
		t.Errorf("got %s %v, want %s", got, err, text)
	}
}

func TestNumbersAreOrderedExactly(t *testing.T) {
	for _, tt := range []struct {
		a, b number
		want int
	}{
		{"9007199254740993", "9007199254740992", 1}, // the same binary64
		{"-9223372036854775808", "9223372036854775807", -1},
		{"7", "7.0", 0},
		{"1e3", "1000", 0},
		{"0.1", "0.2", -1},
		{"-0", "0", 0},
		{"1e999", "1", 1},
		{"-1e999", "1", -1},
		{"10", "9", 1},
	} {
		if got := compare(tt.a, tt.b); got != tt.want {
			t.Errorf("%s and %s: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
