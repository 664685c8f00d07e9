package webhookclient

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/delivery"
	"github.com/kessai/kessai/internal/payment"
)

func TestPrivateAddressesAreRefused(t *testing.T) {
	for _, a := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",
		"192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
		"64:ff9b::a00:1", "2002:a00:1::", "2001:db8::1",
	} {
		if public(netip.MustParseAddr(a)) {
			t.Errorf("%s counts as public", a)
		}
	}
	for _, a := range []string{"1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"} {
		if !public(netip.MustParseAddr(a)) {
			t.Errorf("%s counts as private", a)
		}
	}
}

func TestOnlyPublicHTTPSAddressesCanBeSet(t *testing.T) {
	c := New(false)
	for _, url := range []string{
		"", "shop.example", "http://shop.example", "ftp://shop.example", "https://user:pw@shop.example", "https://shop.example/#x",
		"https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest", "javascript:alert(1)", "//shop.example", "https:shop.example",
	} {
		if c.CheckURL(url) == nil {
			t.Errorf("%q is allowed", url)
		}
	}
	if err := c.CheckURL("https://shop.example/hook?a=b"); err != nil {
		t.Errorf("got %v, want it allowed", err)
	}
	if err := New(true).CheckURL("http://127.0.0.1:8080/hook"); err != nil {
		t.Errorf("got %v in a local run, want it allowed", err)
	}
}

// A public name that leads to a private address is refused at the connection.
func TestTheAddressIsLookedAtAfterItsNameWasResolved(t *testing.T) {
	posted := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posted = true }))
	defer server.Close()
	url := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	status, err := New(false).Post(t.Context(), message(url))
	if !errors.Is(err, ErrAddress) || status != 0 || posted {
		t.Errorf("got %d %v, want ErrAddress and no post", status, err)
	}
}

func message(url string) delivery.Message {
	return delivery.Message{URL: url, ID: "evt_1", At: time.Unix(1_700_000_000, 0), Body: []byte(`{"a":1}`), Secrets: []payment.Secret{
		payment.Secret("whsec_" + base64.StdEncoding.EncodeToString([]byte("new"))), payment.Secret("whsec_" + base64.StdEncoding.EncodeToString([]byte("old"))),
	}}
}

func TestAMessageIsSignedWithEachSecretAndRedirectsAreNotFollowed(t *testing.T) {
	followed := false
	var header http.Header
	var body []byte
	mux := http.NewServeMux()
	mux.HandleFunc("/hook", func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { followed = true })
	server := httptest.NewServer(mux)
	defer server.Close()
	status, err := New(true).Post(t.Context(), message(server.URL+"/hook"))
	if err != nil || status != http.StatusTemporaryRedirect || followed {
		t.Fatalf("got %d %v, followed %v, want the redirect itself", status, err, followed)
	}
	for i, key := range []string{"new", "old"} {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte("evt_1.1700000000." + string(body)))
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if got := strings.Fields(header.Get("webhook-signature"))[i]; got != want {
			t.Errorf("got signature %s, want %s", got, want)
		}
	}
	if header.Get("webhook-id") != "evt_1" || header.Get("webhook-timestamp") != "1700000000" {
		t.Errorf("got headers %v, want id and timestamp", header)
	}
}

func TestWithoutAUsableSecretNothingIsPosted(t *testing.T) {
	for _, secrets := range [][]payment.Secret{nil, {""}, {"whsec_"}, {"whsec_!"}} {
		m := message("https://shop.example")
		m.Secrets = secrets
		if _, err := New(true).Post(t.Context(), m); err == nil {
			t.Errorf("secrets %q: got no error", secrets)
		}
	}
	if a, b := NewSecret(), NewSecret(); a == b || !strings.HasPrefix(a.Reveal(), secretPrefix) {
		t.Error("secrets repeat or have another form")
	}
}
