package api_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/api/apitest"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestAWaitEndsWithTheOutcomeOrItsTime(t *testing.T) {
	apitest.New(t) // outside of the bubble: it is compiled once for all
	tests := []struct {
		name    string
		wait    string
		outcome time.Duration // after which the PSP tells, 0: never
		limit   time.Duration // of the function, 0: none
		status  string
		least   time.Duration
		most    time.Duration
	}{
		{"outcome within the time", "?wait=5", 3 * time.Second, 0, "captured", 3 * time.Second, 3*time.Second + 300*time.Millisecond},
		{"outcome after the time", "?wait=2", 3 * time.Second, 0, "processing", 2 * time.Second, 2 * time.Second},
		{"no wait", "", 0, 0, "processing", 0, 0},
		{"no time", "?wait=0", 0, 0, "processing", 0, 0},
		{"the longest", "?wait=20", 0, 0, "processing", 20 * time.Second, 20 * time.Second},
		{"the function's end comes first", "?wait=20", 0, 10 * time.Second, "processing", 9 * time.Second, 9 * time.Second},
		{"the function has ended already", "?wait=20", 0, 500 * time.Millisecond, "processing", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				id := w.pay(psptest.TokenPending)
				if tt.outcome > 0 {
					time.AfterFunc(tt.outcome, func() {
						w.fake.Approve(id)
						w.deliver()
					})
				}
				ctx := t.Context()
				if tt.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.limit)
					defer cancel()
				}
				began := time.Now()
				got := w.sendContext(ctx, request{method: http.MethodGet, path: "/v1/payments/" + id + tt.wait, apiKey: alpha})
				took := time.Since(began)
				if got.status != http.StatusOK || got.str("status") != tt.status || took < tt.least || took > tt.most {
					t.Errorf("got %d %s after %s, want 200 %s after %s to %s", got.status, got.text, took, tt.status, tt.least, tt.most)
				}
				<-time.After(tt.outcome) // the timer above must not outlive the bubble
				synctest.Wait()
			})
		})
	}
}

func TestAWaitForADecidedPaymentReadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, id := range []string{w.pay(psptest.TokenRequiresAction), w.pay(psptest.TokenDeclined), w.pay(psptest.TokenCaptured, manual)} {
			began := time.Now()
			w.want(w.get("/v1/payments/"+id+"?wait=20"), http.StatusOK, "")
			if took := time.Since(began); took != 0 {
				t.Errorf("got an answer after %s, want it at once", took)
			}
		}
	})
}
