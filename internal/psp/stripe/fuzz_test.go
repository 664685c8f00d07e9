package stripe_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/kessai/kessai/internal/psp"
)

// Nobody without the secret gets anything through, whatever the header.
func FuzzVerify(f *testing.F) {
	f.Add("t=1767322445,v1=d7373bc68f4bd320b253cd7461f87af6e1cdf1b4d7db1614d8d1d746972d2d0a,v0=00", []byte(body))
	f.Add("t=1767322445,t=1,v1=,v1", []byte(body))
	f.Add("v1==,t==", []byte{})
	f.Add(",,,", []byte("\xff"))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		d := psp.Delivery{Body: body, ReceivedAt: arrival, Header: http.Header{"stripe-signature": {header}}}
		if got, err := newAdapter(t, secret).Verify(d); !errors.Is(err, psp.ErrSignature) || got != nil {
			t.Errorf("got %+v %v, want ErrSignature", got, err)
		}
	})
}
