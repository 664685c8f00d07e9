package payment

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// ID identifies a payment: "pay_" and a ULID.
type ID string

// RefundID identifies a refund: "re_" and 26 characters in a ULID's alphabet.
type RefundID string

// Prefixes of identifiers.
const (
	IDPrefix       = "pay_"
	RefundIDPrefix = "re_"
)

// crockford is the alphabet of a ULID.
var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// LateRefundID is the id of the one refund of money that came late to a
// payment. It is derived, so that whoever finds the money asks for the same refund.
func LateRefundID(id ID) RefundID { return derivedRefundID("late_capture", string(id)) }

// CompensationRefundID is the id of the refund with which a checkout gives a
// captured payment back, of the n-th attempt from 0.
func CompensationRefundID(id ID, n int) RefundID {
	return derivedRefundID("compensation", string(id), decimal(n))
}

// OutsideRefundID is the id given here to a refund made at the PSP directly.
func OutsideRefundID(psp, reference string) RefundID {
	return derivedRefundID("outside", psp, reference)
}

func derivedRefundID(parts ...string) RefundID {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	// 16 bytes are 26 characters, like a ULID; the first is kept below 8 as a ULID's is.
	sum[0] &= 0x1f
	return RefundID(RefundIDPrefix + crockford.EncodeToString(sum[:16]))
}

// ulidLength is the length of a ULID in characters.
const ulidLength = 26

// WellFormed reports whether id can be a payment's at all. One that cannot is
// not worth a read.
func (id ID) WellFormed() bool { return wellFormed(string(id), IDPrefix) }

func wellFormed(id, prefix string) bool {
	body, ok := strings.CutPrefix(id, prefix)
	if !ok || len(body) != ulidLength {
		return false
	}
	for i := range len(body) {
		if !strings.ContainsRune("0123456789ABCDEFGHJKMNPQRSTVWXYZ", rune(body[i])) {
			return false
		}
	}
	return true
}
