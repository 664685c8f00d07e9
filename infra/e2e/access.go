package e2e

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

var access = []claim{
	{"without a known key nothing is answered", unknownCaller},
	{"what another merchant owns is not found, exactly like what nobody has", foreignNotFound},
	{"an unknown path is not found, an unknown method not allowed", unknownRoute},
}

func unknownCaller(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	for _, value := range []string{
		"", "Bearer", "Bearer ", "Bearer sk_test_nobody", "Bearer " + s.KeyA + "x", "Bearer " + strings.ToUpper(s.KeyA), "Basic " + s.KeyA,
		s.KeyA, "Bearer " + s.KeyA + " " + s.KeyB, "Bearer \"" + s.KeyA + "\"", "Bearer " + strings.Repeat("x", 4000),
	} {
		header := map[string]string{"Authorization": value, "Idempotency-Key": s.unique("key")}
		if value == "" {
			delete(header, "Authorization")
		}
		for _, r := range []request{
			{method: http.MethodGet, path: "/v1/payments/" + p.ID, header: header},
			{method: http.MethodPost, path: "/v1/payments", body: s.basket(nil), header: header},
			{method: http.MethodGet, path: "/v1/payments/pay_unknown", header: header},
		} {
			if a := s.nobody.send(t, r); a.status != http.StatusUnauthorized {
				t.Errorf("Authorization %.40q: got %s, want 401", value, a)
			} else {
				a.problem(t, http.StatusUnauthorized, "unauthorized")
			}
		}
	}
}

func foreignNotFound(t *testing.T, s *stage) {
	p := s.held(t, nil)
	for _, id := range []string{p.ID, "pay_01ARZ3NDEKTSV4RRFFQ69G5FAV", "pay_x", "x", "pay_" + strings.Repeat("x", 200), p.ID + "x", strings.ToLower(p.ID)} {
		for _, r := range []request{
			{method: http.MethodGet, path: ""},
			{method: http.MethodGet, path: "/events"},
			{method: http.MethodGet, path: "/refunds"},
			{method: http.MethodPost, path: "/capture", body: object{}},
			{method: http.MethodPost, path: "/cancel", body: object{}},
			{method: http.MethodPost, path: "/refunds", body: object{}},
		} {
			unknown := request{method: r.method, path: "/v1/payments/pay_01ARZ3NDEKTSV4RRFFQ69G5FAW" + r.path, body: r.body, header: map[string]string{"Idempotency-Key": s.unique("key")}}
			foreign := request{method: r.method, path: "/v1/payments/" + id + r.path, body: r.body, header: map[string]string{"Idempotency-Key": s.unique("key")}}
			want, got := s.beta.send(t, unknown), s.beta.send(t, foreign)
			want.problem(t, http.StatusNotFound, "not_found")
			if got.status != http.StatusNotFound || !bytes.Equal(got.body, want.body) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	if got := s.read(t, p.ID); got.Status != "authorized" || got.Version != p.Version {
		t.Errorf("got %s version %d after another merchant's calls, want authorized version %d", got.Status, got.Version, p.Version)
	}
}

func unknownRoute(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	for _, path := range []string{"/v1/nowhere", "/v1", "/v2/payments", "/v1/payments/" + p.ID + "/nothing"} {
		s.alpha.send(t, request{method: http.MethodGet, path: path, undocumented: true}).problem(t, http.StatusNotFound)
	}
	for path, method := range map[string]string{
		"/v1/payments": http.MethodDelete, "/v1/payments/" + p.ID: http.MethodPut, "/v1/payments/" + p.ID + "/capture": http.MethodGet,
	} {
		s.alpha.send(t, request{method: method, path: path, undocumented: true}).problem(t, http.StatusMethodNotAllowed)
	}
}
