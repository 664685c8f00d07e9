// Package webhookclient posts signed messages to addresses that merchants chose,
// and to nowhere else: not into the network it runs in.
//
// Signatures follow Standard Webhooks; what is refused follows OWASP's
// Server-Side Request Forgery Prevention Cheat Sheet.
package webhookclient

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kessai/kessai/internal/delivery"
	"github.com/kessai/kessai/internal/payment"
)

const (
	// timeout bounds a whole post. A merchant answers first and works later.
	timeout = 5 * time.Second
	// dialTimeout bounds the connection.
	dialTimeout = 2 * time.Second
	// maxAnswer is how much of an answer is read, so that the connection can be kept.
	maxAnswer = 4 << 10
	// secretPrefix begins a secret; the rest is base64.
	secretPrefix = "whsec_"
	// secretBytes is the length of a secret's key.
	secretBytes = 32
)

// ErrAddress says that an address may not be posted to.
var ErrAddress = errors.New("webhookclient: address not allowed")

// Client posts. Safe for concurrent use.
type Client struct {
	http *http.Client
	// local allows http and private addresses, for a run on one machine.
	local bool
}

// New is a Client. With local, plain http and private addresses are allowed.
func New(local bool) *Client {
	c := &Client{local: local}
	dialer := &net.Dialer{Timeout: dialTimeout, Control: c.control}
	c.http = &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
			Proxy: nil, // a proxy would resolve names where we cannot look
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// control looks at the address that a name was resolved to, right before the
// connection: looking earlier could be told another one.
func (c *Client) control(_, address string, _ syscall.RawConn) error {
	host, err := netip.ParseAddrPort(address)
	if err != nil || (!c.local && !public(host.Addr())) {
		return ErrAddress
	}
	return nil
}

// special are the blocks beside the private ones that no merchant's server is in:
// this network, shared address space, protocol assignments, documentation,
// benchmarking, reserved, translation to IPv4, and the tunnels that embed an IPv4
// address (RFC 6890, RFC 6598, RFC 6052, RFC 3056, RFC 4380).
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2001:db8::/32", "2002::/16")

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
		return false
	}
	for _, block := range special {
		if block.Contains(a) {
			return false
		}
	}
	return true
}

// CheckURL says whether an address may be set: absolute, https (or http in a
// local run), without credentials or fragment, on a usual port. What its name
// leads to is looked at on every post.
func (c *Client) CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return ErrAddress
	}
	allowed := u.Scheme == "https" || c.local && u.Scheme == "http"
	if !allowed {
		return ErrAddress
	}
	if a, err := netip.ParseAddr(strings.Trim(u.Hostname(), "[]")); err == nil && !c.local && !public(a) {
		return ErrAddress
	}
	return nil
}

// Post posts a message, signed with each of its secrets. An error means that
// there was no answer; its text is fit for the merchant's eyes.
func (c *Client) Post(ctx context.Context, m delivery.Message) (int, error) {
	if err := c.CheckURL(m.URL); err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return 0, ErrAddress
	}
	stamp := strconv.FormatInt(m.At.Unix(), 10)
	signature, err := sign(m, stamp)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Kessai-Webhooks/1")
	r.Header.Set("webhook-id", m.ID)
	r.Header.Set("webhook-timestamp", stamp)
	r.Header.Set("webhook-signature", signature)
	response, err := c.http.Do(r)
	if err != nil {
		return 0, told(err)
	}
	defer func() { _ = response.Body.Close() }() // nothing in it matters
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	return response.StatusCode, nil
}

// told is an error in words that give nothing of the network away.
func told(err error) error {
	var timed interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrAddress):
		return ErrAddress
	case errors.As(err, &timed) && timed.Timeout():
		return errors.New("no answer in time")
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New("name cannot be resolved")
	}
	return errors.New("no connection, or it was cut")
}

// sign is the signature header: one signature for each secret.
func sign(m delivery.Message, stamp string) (string, error) {
	var all []string
	for _, secret := range m.Secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), secretPrefix))
		if err != nil || len(key) == 0 {
			return "", errors.New("endpoint has no usable secret")
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(m.ID + "." + stamp + "."))
		mac.Write(m.Body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if len(all) == 0 {
		return "", errors.New("endpoint has no usable secret")
	}
	return strings.Join(all, " "), nil
}

// NewSecret is a random secret in the form of Standard Webhooks.
func NewSecret() payment.Secret {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // never fails
	return payment.Secret(secretPrefix + base64.StdEncoding.EncodeToString(key))
}
