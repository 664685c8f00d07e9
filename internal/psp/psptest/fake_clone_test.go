package psptest_test

import (
	"maps"
	"testing"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestACloneHasALifeOfItsOwn(t *testing.T) {
	fake := psptest.NewFake("simulator")
	if _, err := fake.Create(t.Context(), request("pay_1", psptest.TokenPending, false)); err != nil {
		t.Fatal(err)
	}
	twin := fake.Clone()
	if !twin.Approve("pay_1") || twin.Net("pay_1") != 5000 {
		t.Fatalf("got %+v, want the charge known to the clone", twin.Charges())
	}
	if got := fake.Charges()[0]; got.Status != psp.StatusPending || len(fake.Pending()) != 1 {
		t.Errorf("got %+v and %d events, want the first as it was", got, len(fake.Pending()))
	}
	if _, ok := twin.DisputeOpen("pay_1"); !ok || len(twin.Calls()) != len(fake.Calls()) {
		t.Errorf("got %d and %d calls, want one each", len(twin.Calls()), len(fake.Calls()))
	}
	// A key is remembered by both, and forgotten by one.
	if !maps.Equal(twin.Answered(), fake.Answered()) || len(fake.Answered()) != 1 {
		t.Errorf("got keys %v and %v, want the same", twin.Answered(), fake.Answered())
	}
	twin.ForgetKeys()
	if len(fake.Answered()) != 1 || len(twin.Answered()) != 0 {
		t.Errorf("got keys %v and %v, want them forgotten by the clone alone", fake.Answered(), twin.Answered())
	}
	// What happens to a refund or a dispute of one is nothing to the other.
	disputed := twin.Clone()
	disputed.RefundDirect("pay_1", 1000)
	if disputed.Net("pay_1") != 4000 || twin.Net("pay_1") != 5000 {
		t.Errorf("got %d and %d, want 4000 and 5000", disputed.Net("pay_1"), twin.Net("pay_1"))
	}
}
