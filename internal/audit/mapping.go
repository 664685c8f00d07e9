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
	Kind   EntryKind
	Amount string // its column
	Minus  bool   // it may be written with a minus: the kind says which way the money went
	Empty  string // a column that must hold nothing then, "" for none
}

// mappings are the known formats, by PSP.
var mappings = map[string]Mapping{
	"simulator": {
		PaymentID: "payment_id", Reference: "charge_id", Refund: "refund_id", Currency: "currency", Kind: "type", Units: MinorUnits,
		Kinds: map[string]EntryRule{
			"capture":        {Kind: EntryCapture, Amount: "amount"},
			"charge_failure": {Kind: EntryChargeFailed, Amount: "amount"},
			"refund":         {Kind: EntryRefund, Amount: "amount"},
			"refund_failure": {Kind: EntryRefundFailed, Amount: "amount"},
		},
		PassedOver: []string{"fee", "payout"},
	},
	"stripe": stripeReports,
	"adyen":  adyenReport,
}

// stripeReports are Stripe's itemized reports of balance changes and of payouts, which
// have these columns in common, by "Balance report type"
// (https://docs.stripe.com/reports/report-types/balance) and "Payout reconciliation
// report type" (https://docs.stripe.com/reports/report-types/payout-reconciliation).
// Our id is metadata of the PaymentIntent, whose column is in a report when it is
// asked for. gross and currency are those of the settlement, after a conversion; what
// the customer paid, which is what a payment is about, has columns of its own.
//
// The kinds are those of "Reporting categories and types"
// (https://docs.stripe.com/reports/reporting-categories). A charge of which only a
// part was captured has a row over the whole and one that takes the rest back; one
// that fails later has a row of its own, and so has a refund.
var stripeReports = Mapping{
	PaymentID: "payment_metadata[payment_id]", Reference: "payment_intent_id", Refund: "source_id",
	Currency: "customer_facing_currency", LowerCurrency: true, Kind: "reporting_category", Units: MajorUnits,
	Kinds: map[string]EntryRule{
		"charge":                   {Kind: EntryCapture, Amount: "customer_facing_amount"},
		"charge_failure":           {Kind: EntryChargeFailed, Amount: "customer_facing_amount", Minus: true},
		"partial_capture_reversal": {Kind: EntryRelease, Amount: "customer_facing_amount", Minus: true},
		"refund":                   {Kind: EntryRefund, Amount: "customer_facing_amount", Minus: true},
		"refund_failure":           {Kind: EntryRefundFailed, Amount: "customer_facing_amount", Minus: true},
	},
	PassedOver: []string{
		"advance", "advance_funding", "anticipation_repayment", "climate_order_purchase", "climate_order_refund",
		"connect_collection_transfer", "connect_reserved_funds", "contribution", "dispute", "dispute_reversal", "fee",
		"financing_paydown", "financing_paydown_reversal", "financing_payout", "financing_payout_reversal",
		"issuing_authorization_hold", "issuing_authorization_release", "issuing_disbursement", "issuing_dispute",
		"issuing_dispute_fraud_liability_debit", "issuing_dispute_provisional_credit", "issuing_dispute_provisional_credit_reversal",
		"issuing_transaction", "network_cost", "other_adjustment", "payment_network_reserve_hold", "payment_network_reserve_release",
		"payout", "payout_minimum_balance_hold", "payout_minimum_balance_release", "payout_reversal", "platform_earning",
		"platform_earning_refund", "risk_reserved_funds", "tax", "topup", "topup_reversal", "transfer", "transfer_reversal",
		"unreconciled_customer_funds",
	},
}

// adyenReport is Adyen's "Settlement details report"
// (https://docs.adyen.com/reporting/settlement-reconciliation/transaction-level/settlement-details-report),
// with its "Journal types"
// (https://docs.adyen.com/developers/reporting/settlement-detail-report/settlement-detail-report-structure/journal-types).
// Our id is the merchant reference, and a refund's id is that of the modification. GC
// is the currency of the payment, NC that of the settlement. The report does not say
// which refund a RefundedReversed row gives back.
var adyenReport = Mapping{
	PaymentID: "Merchant Reference", Reference: "Psp Reference", Refund: "Modification Reference", Currency: "Gross Currency",
	Kind: "Type", Units: MajorUnits,
	Kinds: map[string]EntryRule{
		"Settled":  {Kind: EntryCapture, Amount: "Gross Credit (GC)", Empty: "Gross Debit (GC)"},
		"Refunded": {Kind: EntryRefund, Amount: "Gross Debit (GC)", Empty: "Gross Credit (GC)"},
	},
	PassedOver: []string{
		"AuthorisationSchemeFee", "Balancetransfer", "BankInstructionReturned", "Chargeback", "ChargebackReversed", "DepositCorrection",
		"EpaPaid", "Fee", "InternalCompanyPayout", "InvoiceDeduction", "ManualCorrected", "MatchedStatement", "MerchantPayin",
		"MerchantPayinReversed", "MerchantPayout", "MiscCosts", "PaidOut", "PaidOutReversed", "PaymentCost", "RefundedReversed",
		"ReserveAdjustment", "SecondChargeback",
	},
}

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
