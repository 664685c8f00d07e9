package explore

import (
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// Digests are FNV-1a with a mixing step, so that sums of them do not cancel out.
// Two states with one digest count as the same state.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func digestString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return (h ^ 0xff) * fnvPrime
}

func digestNumber(h uint64, n int64) uint64 {
	return mix(h ^ uint64(n)*fnvPrime + 0x9e3779b97f4a7c15)
}

func digestStrings(words ...string) uint64 {
	h := uint64(fnvBasis)
	for _, w := range words {
		h = digestString(h, w)
	}
	return mix(h)
}

// digestItem is the digest of a row, 0 of none. Its writer is left out.
func digestItem(key store.Key, item store.Item) uint64 {
	if item == nil {
		return 0
	}
	return mix(digestString(digestString(fnvBasis, key.PK), key.SK) ^ digestMap(item))
}

// digestMap does not depend on the order of the map.
func digestMap(m map[string]any) uint64 {
	var all uint64 = 0x51ed270b
	for name, v := range m {
		if name != store.AttrWriter {
			all += mix(digestString(fnvBasis, name) ^ mix(digestValue(v)))
		}
	}
	return all
}

func digestValue(v any) uint64 {
	switch v := v.(type) {
	case string:
		return digestString(fnvBasis, v)
	case int64:
		return digestNumber(1, v)
	case bool:
		if v {
			return 2
		}
		return 3
	case []any:
		h := uint64(fnvBasis)
		for _, e := range v {
			h = mix(h*fnvPrime ^ digestValue(e))
		}
		return h
	case map[string]any:
		return digestMap(v)
	}
	return 0
}

// digestAnswer is the digest of a charge or a refund.
func digestAnswer(answer any) uint64 {
	switch a := answer.(type) {
	case psp.Charge:
		return digestCharge(a)
	case psp.Refund:
		return digestRefund(a)
	}
	return 0
}

func digestCharge(c psp.Charge) uint64 {
	h := digestStrings(c.Reference, c.PaymentID, string(c.Status), string(c.Amount.Currency), c.RedirectURL.Reveal())
	h = digestNumber(digestNumber(digestNumber(h, c.Amount.Minor), c.Captured), c.Refunded)
	if c.Decline != nil {
		h = digestString(h, c.Decline.Code)
	}
	for _, r := range c.Refunds {
		h = mix(h*fnvPrime ^ digestRefund(r))
	}
	return h
}

func digestRefund(r psp.Refund) uint64 {
	return digestNumber(digestStrings(r.Reference, r.RefundID, string(r.Status)), r.Amount)
}

// digestProvider is all of the provider: its charges, what each key would get again,
// which calls it refused, and what it has told.
func digestProvider(f *psptest.Fake, told []psptest.Event) uint64 {
	h := uint64(fnvBasis)
	for _, c := range f.Charges() {
		h = mix(h*fnvPrime ^ digestCharge(c))
	}
	for key, what := range f.Answered() { // in no order: a sum
		h += mix(digestStrings(key, what))
	}
	for _, c := range f.Calls() {
		if c.Err != nil && psp.OutcomeOf(c.Err) == psp.OutcomeRejected {
			h += mix(digestStrings("refused", c.Key))
		}
	}
	for _, e := range told {
		h = mix(digestString(digestString(h, e.ID), e.Type) ^ digestCharge(e.Event.Charge))
	}
	return h
}

// digest is the whole world as one number, without its actors. Of what clients were
// told and when they used their keys it holds what later checks look at.
func (w *world) digest() uint64 {
	h := digestNumber(w.rows.digest, w.now.UnixMilli())
	h = mix(h ^ w.pspDigest*fnvPrime)
	for _, f := range w.air {
		h = digestString(h, f.name)
	}
	for _, e := range w.queue {
		h = digestString(h, e.ID)
	}
	h = digestStream(h, w.stream)
	for id, n := range w.published {
		h += mix(digestStrings("published", id) + uint64(min(n, 1)))
	}
	for id := range w.acked {
		h += mix(digestStrings(id))
	}
	for subject, s := range w.sendings { // in no order: a sum
		h += mix(digestNumber(digestNumber(digestStrings(subject, s.key), s.first.UnixMilli()), s.minor))
	}
	for key, subject := range w.keyOwner {
		h += mix(digestStrings("owner", key, subject))
	}
	h = digestNumber(digestNumber(h, int64(w.wanted)), w.lastKey.UnixMilli())
	if w.scenario.PSP.Blind {
		h = digestNumber(h, w.lastMade.UnixMilli())
	}
	if w.lying {
		h = mix(h)
	}
	if w.shop != nil {
		h = w.shop.digest(h)
	}
	return mix(h)
}

// answersDigest is what the checks of later answers look at.
func (w *world) answersDigest() uint64 {
	var h uint64
	for key, at := range w.keys {
		h += mix(digestNumber(digestStrings("key", key), at.UnixMilli()))
	}
	for _, a := range w.answers {
		if a.err == nil {
			h += mix(digestNumber(digestStrings("answer", a.key, string(a.payment.ID), string(a.refund)), a.at.UnixMilli()))
		}
	}
	return h
}

// staleDigest is what an index shows that is behind.
func (w *world) staleDigest() uint64 {
	var h uint64
	for key, item := range w.rows.before {
		if w.scenario.mutant != nil {
			h += mix(digestStrings(key.PK, key.SK) ^ digestItem(key, item))
			continue
		}
		now := w.rows.rows[key]
		if item[store.AttrDueAt] != now[store.AttrDueAt] || item[store.AttrDueShard] != now[store.AttrDueShard] {
			h += mix(digestStrings(key.PK, key.SK) ^ digestValue(item[store.AttrDueAt]) ^ mix(digestValue(item[store.AttrDueShard])))
		}
	}
	return h
}

// digestStream holds the order of each item's changes: that of others is no order.
func digestStream(h uint64, changes []store.Change) uint64 {
	of := map[string]uint64{}
	for _, c := range changes {
		of[c.Key.PK] = mix(of[c.Key.PK]*fnvPrime ^ digestItem(c.Key, c.New))
	}
	for _, d := range of {
		h += mix(d)
	}
	return h
}
