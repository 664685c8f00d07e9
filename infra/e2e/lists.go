package e2e

import (
	"slices"
	"testing"
)

var lists = []claim{
	{"an unknown reference has an empty list", emptyList},
	{"a list is the merchant's own", ownList},
	{"pages make the whole list", pages},
}

func emptyList(t *testing.T, s *stage) {
	p := list[payment](t, s.alpha.get(t, "/v1/payments?reference="+s.unique("order")))
	if len(p.Data) != 0 || p.NextCursor != nil {
		t.Errorf("got %+v, want an empty list", p)
	}
}

func ownList(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	if got := list[payment](t, s.beta.get(t, "/v1/payments?reference="+*p.Reference)); len(got.Data) != 0 {
		t.Errorf("another merchant got %+v, want an empty list", got)
	}
	if got := s.byReference(t, *p.Reference); len(got) != 1 || got[0].ID != p.ID || got[0].Status != "captured" {
		t.Errorf("got %+v, want %s", got, p.ID)
	}
}

func pages(t *testing.T, s *stage) {
	reference := s.unique("order")
	var want []string
	for range 3 {
		want = append(want, s.pay(t, object{"reference": reference, "payment_method": "tok_declined"}, "failed").ID)
	}
	slices.Reverse(want)
	path := "/v1/payments?limit=1&reference=" + reference
	first := list[payment](t, s.alpha.get(t, path))
	if len(first.Data) != 1 || first.NextCursor == nil {
		t.Fatalf("got %+v, want one payment and a cursor", first)
	}
	var got []string
	for _, p := range wholeList[payment](t, s.alpha, path) {
		got = append(got, p.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want newest first %v", got, want)
	}
	s.alpha.get(t, path+"&cursor=nonsense").problem(t, 400)
	rows := wholeList[row](t, s.alpha, "/v1/payments/"+want[0]+"/events?limit=1")
	checkJournal(t, want[0], rows)
	if p := s.read(t, want[0]); int64(len(rows)) != p.Version {
		t.Errorf("got %d rows one by one, want %d", len(rows), p.Version)
	}
}
