package simulator

import "github.com/kessai/kessai/internal/psp"

// codeGeneric stands for a decline whose code is missing or no code at all.
const codeGeneric = "card_declined"

// decline is why a failed charge failed.
func (w *wireCharge) decline() *psp.Decline {
	code := codeGeneric
	if w.DeclineCode != nil && isWord(*w.DeclineCode) {
		code = *w.DeclineCode
	}
	return &psp.Decline{Code: code, Retryable: !hardDeclines[code]}
}

// hardDeclines are the codes after which the same method will not work again:
// the card is gone, blocked or false, or the issuer forbids this use of it.
// Schemes charge for retrying those. Every other decline is soft, such as
// insufficient_funds, do_not_honor, try_again_later, authentication_required
// and card_declined, an unknown one too: it says nothing against another
// attempt, and Retryable only advises the merchant.
var hardDeclines = map[string]bool{
	"account_closed":                   true,
	"card_not_supported":               true,
	"currency_not_supported":           true,
	"expired_card":                     true,
	"fraudulent":                       true,
	"incorrect_number":                 true,
	"invalid_account":                  true,
	"invalid_number":                   true,
	"lost_card":                        true,
	"lost_or_stolen":                   true,
	"pickup_card":                      true,
	"restricted_card":                  true,
	"revocation_of_all_authorizations": true,
	"revocation_of_authorization":      true,
	"security_violation":               true,
	"stolen_card":                      true,
	"stop_payment_order":               true,
	"transaction_not_allowed":          true,
}
