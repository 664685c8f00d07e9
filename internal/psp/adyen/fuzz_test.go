package adyen_test

import (
	"errors"
	"testing"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// Nobody without the key gets anything through that was not signed, whatever the body.
func FuzzVerify(f *testing.F) {
	item := authorisation()
	signed := psptest.SignAdyen(key, item)
	f.Add(signed)
	f.Add(psptest.SignAdyen(otherKey, item))
	f.Add(psptest.SignAdyen(key, item, item))
	f.Add([]byte(`{"notificationItems":[{"NotificationRequestItem":null}]}`))
	f.Add([]byte(`{"notificationItems":[{"NotificationRequestItem":{"amount":{"value":"1e3"},"success":true}}]}`))
	right, err := verify(f, signed)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := verify(t, body)
		if err != nil {
			if !errors.Is(err, psp.ErrSignature) || got != nil {
				t.Errorf("got %+v %v, want ErrSignature and nothing else", got, err)
			}
			return
		}
		for _, n := range got { // copies of the one item that was ever signed
			if n.EventID != right[0].EventID || string(n.Body) != string(right[0].Body) {
				t.Errorf("got %+v, want %+v", n, right[0])
			}
		}
		if len(got) == 0 {
			t.Error("got no notification and no error")
		}
	})
}
