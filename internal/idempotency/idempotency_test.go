package idempotency_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
)

func TestParseKey(t *testing.T) {
	long := strings.Repeat("k", 255)
	for _, c := range []struct {
		name, header, want string
		err                error
	}{
		{"plain", "order-42", "order-42", nil},
		{"one character", "k", "k", nil},
		{"every printable", "!#$%&'()*+,-./:;<=>?@[]^_`{|}~ a", "!#$%&'()*+,-./:;<=>?@[]^_`{|}~ a", nil},
		{"space around", " \tk\t ", "k", nil},
		{"space inside", "a b", "a b", nil},
		{"quoted", `"order-42"`, "order-42", nil},
		{"quoted with escapes", `"a\"b\\c"`, `a"b\c`, nil},
		{"quoted with space", `" k "`, " k ", nil},
		{"a quote alone", `"`, `"`, nil},
		{"half quoted", `"k`, `"k`, nil},
		{"the longest", long, long, nil},
		{"the longest quoted", `"` + long + `"`, long, nil},
		{"missing", "", "", idempotency.ErrKeyRequired},
		{"blank", " \t ", "", idempotency.ErrKeyRequired},
		{"quoted nothing", `""`, "", idempotency.ErrKeyRequired},
		{"too long", long + "k", "", idempotency.ErrKeyInvalid},
		{"too long quoted", `"` + long + `k"`, "", idempotency.ErrKeyInvalid},
		{"control character", "a\x01b", "", idempotency.ErrKeyInvalid},
		{"delete", "a\x7fb", "", idempotency.ErrKeyInvalid},
		{"tab inside", "a\tb", "", idempotency.ErrKeyInvalid},
		{"not ASCII", "caf\u00e9", "", idempotency.ErrKeyInvalid},
		{"not UTF-8", "\xff", "", idempotency.ErrKeyInvalid},
		{"quote inside a string", `"a"b"`, "", idempotency.ErrKeyInvalid},
		{"unknown escape", `"a\nb"`, "", idempotency.ErrKeyInvalid},
		{"escape at the end", `"a\"`, "", idempotency.ErrKeyInvalid},
		{"control in a string", "\"a\x01\"", "", idempotency.ErrKeyInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := idempotency.ParseKey(c.header)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v, want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"", "k", `"k"`, `"a\"b\\c"`, "caf\u00e9", "\xff", `"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		key, err := idempotency.ParseKey(header)
		if err != nil {
			if key != "" {
				t.Errorf("got key %q with %v", key, err)
			}
			return
		}
		if len(key) == 0 || len(key) > idempotency.MaxKeyLength {
			t.Errorf("got a key of %d characters", len(key))
		}
		for i := range len(key) {
			if key[i] < ' ' || key[i] > '~' {
				t.Errorf("got key %q with a character that is not printable ASCII", key)
			}
		}
	})
}

func TestScopesNeverMeet(t *testing.T) {
	base := idempotency.Scope{MerchantID: "m", Method: "POST", Route: "/v1/payments", Key: "k"}
	others := map[string]idempotency.Scope{
		"method":               {MerchantID: "m", Method: "PUT", Route: "/v1/payments", Key: "k"},
		"route":                {MerchantID: "m", Method: "POST", Route: "/v1/payments/pay_1/refunds", Key: "k"},
		"key":                  {MerchantID: "m", Method: "POST", Route: "/v1/payments", Key: "K"},
		"the border moved":     {MerchantID: "m", Method: "POST", Route: "/v1/payment", Key: "sk"},
		"the other border too": {MerchantID: "m", Method: "POST/v1", Route: "/payments", Key: "k"},
	}
	seen := map[string]string{base.Hash(): "base"}
	for name, scope := range others {
		if other, met := seen[scope.Hash()]; met {
			t.Errorf("%s meets %s", name, other)
		}
		seen[scope.Hash()] = name
	}
	if again := base; again.Hash() != base.Hash() {
		t.Error("the same scope has two hashes")
	}
	if strings.Contains(base.Hash(), "k\x00") || len(base.Hash()) != 64 {
		t.Errorf("got %q, want 64 hexadecimal characters", base.Hash())
	}
}

func TestAFingerprintIsOfEveryByte(t *testing.T) {
	if first, again := idempotency.Fingerprint([]byte(`{"a":1}`)), idempotency.Fingerprint([]byte(`{"a":1}`)); first != again {
		t.Error("the same request has two fingerprints")
	}
	if idempotency.Fingerprint([]byte(`{"a":1}`)) == idempotency.Fingerprint([]byte(`{"a":2}`)) {
		t.Error("two requests have one fingerprint")
	}
}

func TestARecordExpiresWhenItIsOldAndItsResourceAtRest(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := idempotency.Record{CreatedAt: start, Fingerprint: "print"}
	const ttl = 24 * time.Hour
	for _, c := range []struct {
		age     time.Duration
		atRest  bool
		expired bool
	}{
		{ttl - time.Nanosecond, true, false}, {ttl, true, true}, {ttl, false, false}, {100 * ttl, false, false}, {100 * ttl, true, true}, {-time.Hour, true, false},
	} {
		if got := r.Expired(start.Add(c.age), ttl, c.atRest); got != c.expired {
			t.Errorf("%s old, at rest %t: got expired %t, want %t", c.age, c.atRest, got, c.expired)
		}
	}
	if err := r.Check("print"); err != nil {
		t.Errorf("same: got %v", err)
	}
	if err := r.Check("another"); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Errorf("another: got %v, want %v", err, idempotency.ErrKeyReused)
	}
}
