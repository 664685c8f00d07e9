package audit

import (
	"maps"
	"slices"
)

// Units are what a file's amounts are counted in.
type Units string

// Units of amounts.
const (
	MinorUnits Units = "minor" // 500 is 5.00 euro
	MajorUnits Units = "major" // 5.00 is 5.00 euro, with up to as many decimals as the currency has
)

// Mapping says where a PSP's settlement file has what is compared. Names of columns
// count exactly as written; columns that no mapping names are not looked at.
type Mapping struct {
	PaymentID     string // our id, as it was given to the PSP
	Reference     string // the PSP's id of the charge
	Refund        string // the PSP's id of the refund
	Currency      string
	LowerCurrency bool // codes are written in lower case
	Kind          string
	Units         Units
	Kinds         map[string]EntryRule
	PassedOver    []string // kinds that are about no single payment, or that nothing here is compared with
}

// EntryRule is how a row of one kind is read.
type EntryRule struct {
	Kind     EntryKind
	Amount   string // its column
	Negative bool   // written with a minus
	Empty    string // a column that must hold nothing then, "" for none
}

// mappings are the known formats, by PSP.
var mappings = map[string]Mapping{
	"simulator": {
		PaymentID: "payment_id", Reference: "charge_id", Refund: "refund_id", Currency: "currency", Kind: "type", Units: MinorUnits,
		Kinds: map[string]EntryRule{
			"capture": {Kind: EntryCapture, Amount: "amount"},
			"refund":  {Kind: EntryRefund, Amount: "amount"},
		},
		PassedOver: []string{"fee", "payout"},
	},
	// Itemised reports of balance changes or payouts, with our id as metadata.
	"stripe": {
		PaymentID: "payment_metadata[payment_id]", Reference: "payment_intent_id", Refund: "source_id", Currency: "currency", LowerCurrency: true,
		Kind: "reporting_category", Units: MajorUnits,
		Kinds: map[string]EntryRule{
			"charge": {Kind: EntryCapture, Amount: "gross"},
			"refund": {Kind: EntryRefund, Amount: "gross", Negative: true},
		},
		PassedOver: []string{
			"advance", "charge_failure", "contribution", "dispute", "dispute_reversal", "fee", "network_cost", "other_adjustment",
			"partial_capture_reversal", "payout", "payout_minimum_balance_hold", "payout_minimum_balance_release", "payout_reversal",
			"platform_earning", "platform_earning_refund", "refund_failure", "risk_reserved_funds", "tax", "topup", "topup_reversal",
		},
	},
	// The settlement details report. Our id is the merchant reference.
	"adyen": {
		PaymentID: "Merchant Reference", Reference: "Psp Reference", Refund: "Modification Reference", Currency: "Gross Currency",
		Kind: "Type", Units: MajorUnits,
		Kinds: map[string]EntryRule{
			"Settled":  {Kind: EntryCapture, Amount: "Gross Credit (GC)", Empty: "Gross Debit (GC)"},
			"Refunded": {Kind: EntryRefund, Amount: "Gross Debit (GC)", Empty: "Gross Credit (GC)"},
		},
		PassedOver: []string{
			"AdvancementCommission", "Balancetransfer", "BankTransfer", "Chargeback", "ChargebackReversed", "DepositCorrection", "Fee",
			"InternalCompanyPayout", "InvoiceDeduction", "MatchedStatement", "MerchantPayin", "MerchantPayout", "MiscCosts",
			"PaymentCost", "RefundedReversed", "ReserveAdjustment", "SecondChargeback",
		},
	},
}

// Formats are the PSPs whose settlement files can be read.
func Formats() []string { return slices.Sorted(maps.Keys(mappings)) }

// needed are the columns without which a file cannot be read.
func (m Mapping) needed() []string {
	columns := []string{m.PaymentID, m.Reference, m.Refund, m.Currency, m.Kind}
	for _, name := range slices.Sorted(maps.Keys(m.Kinds)) {
		for _, column := range []string{m.Kinds[name].Amount, m.Kinds[name].Empty} {
			if column != "" && !slices.Contains(columns, column) {
				columns = append(columns, column)
			}
		}
	}
	return columns
}
