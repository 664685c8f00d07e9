package stripe

import (
	"net/http"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// Some published vectors have a secret without Stripe's prefix, which New
// refuses, so that the adapter is put together here.
func TestSignaturesOfPublishedVectors(t *testing.T) {
	for _, v := range psptest.PublishedVectors(t, "stripe") {
		header := http.Header{}
		for key, value := range v.Headers {
			header[key] = []string{value}
		}
		adapter := &Adapter{keys: [][]byte{[]byte(v.Secret)}, tolerance: 5 * time.Minute}
		_, err := adapter.Verify(psp.Delivery{Header: header, Body: v.Body, ReceivedAt: time.Unix(v.VerifyAt, 0)})
		if (err == nil) != *v.Valid {
			t.Errorf("%s: got %v, want valid %t", v.Name, err, *v.Valid)
		}
	}
}
