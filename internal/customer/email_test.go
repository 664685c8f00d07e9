package customer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/customer"
)

// wrongVerbs make fmt print their operands after a complaint; in a variable, since
// vet refuses them in a call.
var wrongVerbs = "%d %t %c"

func TestOnlyOneBareAddressIsAnEmail(t *testing.T) {
	for _, s := range []string{"a@example.com", "first.last+tag@sub.example.co.jp", "ü@example.com", strings.Repeat("x", 242) + "@example.com"} {
		if got, err := customer.ParseEmail(s); err != nil || got.Reveal() != s {
			t.Errorf("%q: got %q %v, want it", s, got.Reveal(), err)
		}
	}
	for _, s := range []string{
		"", "a", "@example.com", "a@", "a b@example.com", "A <a@example.com>", "<a@example.com>", " a@example.com", "a@example.com ",
		"a@example.com, b@example.com", "a@example.com\r\nBcc: b@example.com", "a@example.com (comment)", strings.Repeat("x", 243) + "@example.com",
	} {
		if got, err := customer.ParseEmail(s); !errors.Is(err, customer.ErrEmail) {
			t.Errorf("%q: got %q %v, want ErrEmail", s, got.Reveal(), err)
		}
	}
}

func TestNoWayOfPrintingShowsTheAddress(t *testing.T) {
	const address = "a@example.com"
	e := customer.Email(address)
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
		slog.New(h).Info("told", "to", e, "in", struct{ To customer.Email }{e})
	}
	encoded, err := json.Marshal(map[string]any{"to": e})
	if err != nil {
		t.Fatal(err)
	}
	text := log.String() + string(encoded) + fmt.Sprintf("%v %+v %#v %s %q %x %v", e, e, e, e, e, e, []customer.Email{e}) + fmt.Sprintf(wrongVerbs, e, e, e)
	if strings.Contains(text, address) || strings.Contains(text, fmt.Sprintf("%x", address)) {
		t.Errorf("got %s, want no address in it", text)
	}
	if got := customer.Email("").String(); got != "" {
		t.Errorf("got %q for no address, want nothing", got)
	}
}
