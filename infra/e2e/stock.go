package e2e

import (
	"net/http"
	"testing"
)

var stocks = []claim{
	{"setting stock keeps what is reserved and sold", stockKept},
	{"a SKU nobody has set is not found", stockUnknown},
	{"stock belongs to a merchant", stockOwned},
}

func stockKept(t *testing.T, s *stage) {
	sku := s.stocked(t, 10)
	s.hasStock(t, stock{sku, 10, 0, 0})
	c := s.buy(t, object{"items": []object{line(sku, 3, 100)}, "payment_method": "tok_requires_action"})
	c = s.concludes(t, c.ID, "requires_action")
	s.stockedAs(t, sku, 20)
	s.hasStock(t, stock{sku, 20, 3, 0})
	s.choose(t, c.payment, "approve")
	s.completed(t, c.ID)
	s.hasStock(t, stock{sku, 20, 0, 3})
	s.stockedAs(t, sku, 0)
	s.hasStock(t, stock{sku, 0, 0, 3})
}

func stockUnknown(t *testing.T, s *stage) {
	s.alpha.get(t, "/v1/stock/"+s.unique("sku")).problem(t, http.StatusNotFound, "not_found")
}

func stockOwned(t *testing.T, s *stage) {
	sku := s.stocked(t, 4)
	s.beta.get(t, "/v1/stock/"+sku).problem(t, http.StatusNotFound, "not_found")
	s.beta.send(t, request{method: http.MethodPut, path: "/v1/stock/" + sku, body: object{"available": 1}}).want(t, http.StatusOK, http.StatusCreated, http.StatusNoContent)
	s.hasStock(t, stock{sku, 4, 0, 0})
}

var crowds = []claim{
	{"two buyers of the last piece: one gets it, the other is not charged", lastPiece},
	{"many buyers of a hot SKU: every piece is sold once", hotSKU},
	{"baskets that cross each other sell no piece twice", crossedBaskets},
	{"setting stock among buyers loses no piece", stockAmongBuyers},
	{"a cancel at the moment of the charge agrees with the checkout", cancelAgainstCheckout},
	{"many requests with one key are one checkout", oneCheckout},
}

func lastPiece(t *testing.T, s *stage) {
	sku := s.stocked(t, 1)
	s.crowd(t, sku, 2, 1)
}

func hotSKU(t *testing.T, s *stage) {
	sku := s.stocked(t, int64(s.Buyers*5/8))
	s.crowd(t, sku, s.Buyers, s.Buyers*5/8)
}

// crowd sends buyers at once for a SKU with so many pieces.
func (s *stage) crowd(t *testing.T, sku string, buyers, pieces int) {
	t.Helper()
	all := s.alpha.race(t, repeat(buyers, func() request {
		return post("/v1/checkouts", s.unique("key"), s.cart(object{"items": []object{line(sku, 1, 2500)}}))
	}))
	completed := 0
	for _, a := range answers(t, all, http.StatusAccepted)[http.StatusAccepted] {
		id := a.checkout(t).ID
		s.eventually(t, id+" ends", func() (bool, any) {
			got := s.readCheckout(t, id)
			return got.Status == "completed" || got.Status == "failed", got.Status
		})
		if c := s.readCheckout(t, id); c.Status == "completed" {
			completed++
			s.charge(t, c.payment.ID)
		} else {
			s.neverCharged(t, s.failsWith(t, id, "out_of_stock"))
		}
	}
	if completed != pieces {
		t.Errorf("got %d completed checkouts, want %d", completed, pieces)
	}
	s.hasStock(t, stock{sku, 0, 0, int64(pieces)})
}

// ended waits until each of the checkouts has ended, and returns those that completed.
func (s *stage) ended(t *testing.T, all []answer) (completed []checkout) {
	t.Helper()
	for _, a := range answers(t, all, http.StatusAccepted)[http.StatusAccepted] {
		var c checkout
		s.eventually(t, "a checkout ends", func() (bool, any) {
			c = s.readCheckout(t, a.checkout(t).ID)
			return c.Status == "completed" || c.Status == "failed", c.Status
		})
		if c.Status == "completed" {
			completed = append(completed, c)
		} else if c.payment.AmountCaptured != c.payment.AmountRefunded {
			t.Errorf("got %d captured and %d refunded of a failed checkout", c.payment.AmountCaptured, c.payment.AmountRefunded)
		}
	}
	return completed
}

func crossedBaskets(t *testing.T, s *stage) {
	pieces := int64(max(2, s.Buyers/8))
	left, right := s.stocked(t, pieces), s.stocked(t, pieces)
	turn := false
	completed := s.ended(t, s.alpha.race(t, repeat(max(4, s.Buyers/4), func() request {
		items := []object{line(left, 1, 100), line(right, 1, 100)}
		if turn = !turn; turn {
			items[0], items[1] = items[1], items[0]
		}
		return post("/v1/checkouts", s.unique("key"), s.cart(object{"items": items}))
	})))
	if int64(len(completed)) != pieces {
		t.Errorf("got %d completed checkouts, want %d", len(completed), pieces)
	}
	s.hasStock(t, stock{left, 0, 0, pieces})
	s.hasStock(t, stock{right, 0, 0, pieces})
}

func stockAmongBuyers(t *testing.T, s *stage) {
	sku := s.stocked(t, 1000)
	requests := repeat(max(4, s.Buyers/4), func() request {
		return post("/v1/checkouts", s.unique("key"), s.cart(object{"items": []object{line(sku, 1, 100)}}))
	})
	settings := repeat(2, func() request {
		return request{method: http.MethodPut, path: "/v1/stock/" + sku, body: object{"available": 1000}}
	})
	all := s.alpha.race(t, append(settings, requests...))
	for _, a := range all[:len(settings)] {
		a.want(t, http.StatusOK, http.StatusCreated, http.StatusNoContent)
	}
	completed := s.ended(t, all[len(settings):])
	if len(completed) != len(requests) {
		t.Errorf("got %d completed checkouts, want %d", len(completed), len(requests))
	}
	s.eventually(t, "what was reserved is sold", func() (bool, any) {
		got := s.stock(t, sku)
		return got.Reserved == 0 && got.Sold == int64(len(completed)) && got.Available <= 1000, got
	})
}

func cancelAgainstCheckout(t *testing.T, s *stage) {
	for range 3 {
		sku := s.stocked(t, 1)
		c := s.alpha.post(t, "/v1/checkouts", s.cart(object{"items": []object{line(sku, 1, 2500)}})).want(t, http.StatusAccepted).checkout(t)
		a := s.alpha.post(t, cancelOf(c.payment), object{}).want(t, http.StatusOK, http.StatusAccepted, http.StatusConflict)
		s.eventually(t, c.ID+" ends", func() (bool, any) {
			c = s.readCheckout(t, c.ID)
			return c.Status == "completed" || c.Status == "failed", c
		})
		if c.Status == "completed" {
			if a.status == http.StatusOK {
				t.Errorf("got %s, then the checkout completed", a)
			}
			s.completed(t, c.ID)
			s.hasStock(t, stock{sku, 0, 0, 1})
			continue
		}
		s.failsWith(t, c.ID, "payment_canceled")
		s.hasStock(t, stock{sku, 1, 0, 0})
	}
}

func oneCheckout(t *testing.T, s *stage) {
	sku, key := s.stocked(t, 50), s.unique("key")
	cart := s.cart(object{"items": []object{line(sku, 1, 2500)}})
	by := answers(t, s.alpha.race(t, repeat(s.Crowd, func() request { return post("/v1/checkouts", key, cart) })),
		http.StatusAccepted, http.StatusCreated, http.StatusConflict)
	ids := map[string]bool{}
	for _, a := range append(by[http.StatusAccepted], by[http.StatusCreated]...) {
		ids[a.checkout(t).ID] = true
	}
	for _, a := range by[http.StatusConflict] {
		a.problem(t, http.StatusConflict, "idempotency_in_progress")
	}
	if len(ids) != 1 {
		t.Fatalf("got %d checkouts for one key, want one", len(ids))
	}
	for id := range ids {
		s.completed(t, id)
	}
	s.hasStock(t, stock{sku, 49, 0, 1})
}
