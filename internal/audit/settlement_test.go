package audit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/money"
)

const simulatorHeader = "charge_id,payment_id,type,refund_id,amount,currency\n"

func capture(line int, payment, charge string, minor int64, currency money.Currency) audit.Entry {
	return audit.Entry{Line: line, Kind: audit.EntryCapture, PaymentID: payment, Reference: charge, Amount: money.Amount{Minor: minor, Currency: currency}}
}

func refund(line int, payment, charge, id string, minor int64, currency money.Currency) audit.Entry {
	e := capture(line, payment, charge, minor, currency)
	e.Kind, e.Refund = audit.EntryRefund, id
	return e
}

func failed(e audit.Entry, kind audit.EntryKind) audit.Entry {
	e.Kind = kind
	return e
}

// Files as the PSPs write them: every column of theirs, and rows of every kind.
func TestAFileAsThePSPWritesItIsReadWhole(t *testing.T) {
	for _, tt := range []struct {
		psp    string
		passed int
		want   []audit.Entry
	}{
		{"stripe", 4, []audit.Entry{
			capture(2, "pay_01", "pi_01", 5000, "EUR"),
			capture(3, "pay_02", "pi_02", 5000, "JPY"), // what the customer paid, not what was settled
			capture(4, "pay_03", "pi_03", 6000, "EUR"), // less what was released
			refund(6, "pay_01", "pi_01", "re_01", 1250, "EUR"),
			failed(refund(8, "pay_01", "pi_01", "re_04", 300, "EUR"), audit.EntryRefundFailed),
			failed(capture(10, "pay_05", "pi_05", 1500, "EUR"), audit.EntryChargeFailed),
			capture(11, "", "pi_06", 700, "EUR"),
		}},
		{"adyen", 8, []audit.Entry{
			capture(2, "pay_01", "8800000000000001", 5000, "EUR"),
			capture(3, "pay_02", "8800000000000002", 5000, "JPY"),
			capture(4, "pay_03", "8800000000000003", 18600, "KWD"),
			refund(5, "pay_01", "8800000000000001", "8800000000000201", 1250, "EUR"),
		}},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", tt.psp+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(text), "\ufeff" + strings.ReplaceAll(string(text), "\n", "\r\n")} {
			got, err := audit.ParseSettlement(tt.psp, text)
			if err != nil || len(got.Bad) != 0 || got.PassedOver != tt.passed || !reflect.DeepEqual(got.Entries, tt.want) {
				t.Errorf("%s: got %+v, %v, want %d rows passed over and %+v", tt.psp, got, err, tt.passed, tt.want)
			}
		}
	}
}

const stripeHeader = "reporting_category,customer_facing_currency,customer_facing_amount,payment_intent_id,source_id,payment_metadata[payment_id]\n"

// What takes another row back is put together with it, in whatever order they come.
func TestRowsThatTakeOthersBackArePutTogetherWithThem(t *testing.T) {
	for _, tt := range []struct {
		rows string
		want []audit.Entry
		bad  []audit.BadRow
	}{
		{"partial_capture_reversal,eur,-2.00,pi_1,re_0,pay_1\ncharge,eur,5.00,pi_1,ch_1,pay_1\n", []audit.Entry{capture(3, "pay_1", "pi_1", 300, "EUR")}, nil},
		{
			"charge,eur,5.00,pi_1,ch_1,pay_1\npartial_capture_reversal,eur,2.00,pi_2,re_0,pay_2\n",
			[]audit.Entry{capture(2, "pay_1", "pi_1", 500, "EUR")},
			[]audit.BadRow{{Line: 3, Reason: "takes back a part of a charge that the file does not have"}},
		},
		{
			"x\npartial_capture_reversal,eur,5.00,pi_1,re_0,pay_1\ncharge,eur,5.00,pi_1,ch_1,pay_1\n", nil,
			[]audit.BadRow{{Line: 2, Reason: "has another number of columns than the first row"}, {Line: 4, Reason: "nothing of the amount is left"}},
		},
		{
			"charge,eur,5.00,pi_1,ch_1,pay_1\npartial_capture_reversal,usd,2.00,pi_1,re_0,pay_1\n",
			[]audit.Entry{capture(2, "pay_1", "pi_1", 500, "EUR")},
			[]audit.BadRow{{Line: 3, Reason: "takes back a part of a charge that the file does not have"}},
		},
		{"charge_failure,eur,5.00,pi_1,pyr_1,pay_1\ncharge,eur,5.00,pi_1,py_1,pay_1\n", []audit.Entry{failed(capture(2, "pay_1", "pi_1", 500, "EUR"), audit.EntryChargeFailed)}, nil},
		{"refund_failure,eur,5.00,pi_1,re_1,pay_1\nrefund,eur,-5.00,pi_1,re_1,pay_1\nrefund,eur,-5.00,pi_1,re_2,pay_1\n", []audit.Entry{
			failed(refund(2, "pay_1", "pi_1", "re_1", 500, "EUR"), audit.EntryRefundFailed), refund(4, "pay_1", "pi_1", "re_2", 500, "EUR"),
		}, nil},
	} {
		got, err := audit.ParseSettlement("stripe", stripeHeader+tt.rows)
		if err != nil || !reflect.DeepEqual(got.Entries, tt.want) || !reflect.DeepEqual(got.Bad, tt.bad) {
			t.Errorf("%s: got %+v, %v, want %+v and bad %+v", tt.rows, got, err, tt.want, tt.bad)
		}
	}
}

func TestGoodRowsAreReadByTheMapping(t *testing.T) {
	tests := []struct {
		name, psp, text string
		want            []audit.Entry
	}{
		{"minor units", "simulator", simulatorHeader + "ch_1,pay_1,capture,,5000,JPY\nch_1,pay_1,refund,rf_1,18600,KWD\n", []audit.Entry{
			capture(2, "pay_1", "ch_1", 5000, "JPY"), refund(3, "pay_1", "ch_1", "rf_1", 18600, "KWD"),
		}},
		{
			"a byte-order mark, semicolons, quotes, other columns in another order", "simulator",
			"\ufeff" + `currency;"note; free";amount;type;refund_id;payment_id;charge_id` + "\r\n" + `EUR;"a ""b""; c";"250";capture;;pay_1;ch_1` + "\r\n",
			[]audit.Entry{capture(2, "pay_1", "ch_1", 250, "EUR")},
		},
		{
			"a field over two lines keeps later line numbers right", "simulator",
			"note," + simulatorHeader + "\"a\nb\",ch_1,pay_1,capture,,1,JPY\n,ch_2,pay_2,capture,,2,JPY\n",
			[]audit.Entry{capture(2, "pay_1", "ch_1", 1, "JPY"), capture(4, "pay_2", "ch_2", 2, "JPY")},
		},
		{"rows that are about no payment are passed over", "simulator", simulatorHeader + ",,payout,,5000,JPY\n,,fee,,x,y\n", nil},
		{"a charge without an id of ours is one all the same", "simulator", simulatorHeader + "ch_1,,capture,,5000,JPY\n", []audit.Entry{capture(2, "", "ch_1", 5000, "JPY")}},
		{
			"major units by the currency's own decimals", "stripe",
			stripeHeader +
				"charge,jpy,500,pi_1,ch_1,pay_1\ncharge,eur,10.5,pi_2,ch_2,pay_2\ncharge,kwd,18.600,pi_3,ch_3,pay_3\nrefund,eur,-0.07,pi_2,re_9,pay_2\n",
			[]audit.Entry{
				capture(2, "pay_1", "pi_1", 500, "JPY"), capture(3, "pay_2", "pi_2", 1050, "EUR"), capture(4, "pay_3", "pi_3", 18600, "KWD"),
				refund(5, "pay_2", "pi_2", "re_9", 7, "EUR"),
			},
		},
		{
			"debit and credit", "adyen",
			"Psp Reference,Merchant Reference,Type,Modification Reference,Gross Currency,Gross Debit (GC),Gross Credit (GC)\n" +
				"A,pay_1,Settled,B,EUR,,12.00\nA,pay_1,Refunded,C,EUR,2,0.00\n",
			[]audit.Entry{capture(2, "pay_1", "A", 1200, "EUR"), refund(3, "pay_1", "A", "C", 200, "EUR")},
		},
		{"no rows", "simulator", simulatorHeader, nil},
	}
	for _, tt := range tests {
		got, err := audit.ParseSettlement(tt.psp, tt.text)
		if err != nil || len(got.Bad) != 0 || !reflect.DeepEqual(got.Entries, tt.want) {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

func TestBadRowsAreListedAndTheOthersUsed(t *testing.T) {
	good := "ch_0,pay_0,capture,,1,JPY\n"
	for row, reason := range map[string]string{
		"ch_1,pay_1,capture,,5000":                         "has another number of columns than the first row",
		"ch_1,pay_1,capture,,5000,JPY,x":                   "has another number of columns than the first row",
		"ch_1,pay_1,capture,,5000,XXX":                     "is in an unknown currency",
		"ch_1,pay_1,capture,,5000,jpy":                     "is in an unknown currency",
		"ch_1,pay_1,capture,,5000,":                        "is in an unknown currency",
		"ch_1,pay_1,capture,,50.00,JPY":                    "the amount is none",
		"ch_1,pay_1,capture,,50.00,EUR":                    "the amount is none",
		`ch_1,pay_1,capture,,"5,000",JPY`:                  "the amount is none",
		"ch_1,pay_1,capture,,-1,JPY":                       "the amount is none",
		"ch_1,pay_1,capture,,+1,JPY":                       "the amount is none",
		"ch_1,pay_1,capture,,1e3,JPY":                      "the amount is none",
		"ch_1,pay_1,capture,,0,JPY":                        "the amount is none",
		"ch_1,pay_1,capture,,,JPY":                         "the amount is none",
		"ch_1,pay_1,capture,,1000000000000,JPY":            "the amount is none",
		"ch_1,pay_1,capture,,99999999999999999999,JPY":     "the amount is none",
		"ch_1,pay_1,capture,,\uff15,JPY":                   "the amount is none",
		",,capture,,1,JPY":                                 "says of no payment",
		"ch_1,pay_1,refund,,1,JPY":                         "a refund has no id",
		"ch_1,pay_1,settled,,1,JPY":                        "is of an unknown kind",
		"ch_1,pay_1,,,1,JPY":                               "is of an unknown kind",
		"ch_0,pay_0,capture,,2,JPY":                        "says again what line 2 says",
		"ch_1,pay_1\xff,capture,,1,JPY":                    "is not UTF-8",
		strings.Repeat("c", 256) + ",pay_1,capture,,1,JPY": "a field is too long",
		`ch_1,pay_"1,capture,,1,JPY`:                       "a quote stands in a field that does not begin with one",
		`"ch_1"x,pay_1,capture,,1,JPY`:                     "a quote is not closed, or something follows it",
	} {
		got, err := audit.ParseSettlement("simulator", simulatorHeader+good+row+"\nch_9,pay_9,capture,,9,JPY\n")
		want := []audit.Entry{capture(2, "pay_0", "ch_0", 1, "JPY"), capture(4, "pay_9", "ch_9", 9, "JPY")}
		if err != nil || !reflect.DeepEqual(got, audit.Settlement{Entries: want, Bad: []audit.BadRow{{Line: 3, Reason: reason}}}) {
			t.Errorf("%q: got %+v, %v, want line 3: %s", row, got, err, reason)
		}
	}
}

func TestAmountsInMajorUnitsAreExact(t *testing.T) {
	for _, tt := range []struct {
		currency, gross string
		want            int64 // 0 for refused
	}{
		{"eur", "0.1", 10},
		{"eur", "0.29", 29},
		{"eur", "1.15", 115},
		{"eur", "9999999999.99", 999999999999},
		{"eur", "10000000000.00", 0},
		{"eur", "10.000", 0},
		{"eur", "10.", 0},
		{"eur", ".5", 0},
		{"eur", "1.2.3", 0},
		{"eur", "10,00", 0},
		{"eur", "1 0", 0},
		{"eur", "--1", 0},
		{"jpy", "10.0", 10},
		{"jpy", "10.00", 10},
		{"jpy", "10.01", 0},
		{"jpy", "10.000", 0},
		{"eur", "10.0000", 0},
		{"jpy", "10", 10},
		{"kwd", "0.001", 1},
		{"clf", "0.0001", 1},
		{"eur", "-1.00", 0},
		{"eur", "NaN", 0},
		{"eur", "0.00", 0},
	} {
		file, err := audit.ParseSettlement("stripe", stripeHeader+"charge,"+tt.currency+`,"`+tt.gross+`",pi_1,ch_1,pay_1`)
		got := int64(0)
		if len(file.Entries) == 1 {
			got = file.Entries[0].Amount.Minor
		}
		if err != nil || got != tt.want || len(file.Entries)+len(file.Bad) != 1 {
			t.Errorf("%s %s: got %d, bad %v, %v, want %d", tt.gross, tt.currency, got, file.Bad, err, tt.want)
		}
	}
}

func TestAnUnclosedQuoteIsListed(t *testing.T) {
	got, err := audit.ParseSettlement("simulator", simulatorHeader+"ch_1,pay_1,capture,,1,JPY\n\"ch_2,pay_2,capture,,1,JPY\nch_3,pay_3,capture,,1,JPY\n")
	if err != nil || len(got.Entries) != 1 || len(got.Bad) != 1 || got.Bad[0].Line != 3 {
		t.Errorf("got %+v, %v, want line 3 listed and the row before it used", got, err)
	}
}

func TestAFileThatCannotBeReadByItsHeaderIsRefusedWhole(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":          "",
		"no header":        "ch_1,pay_1,capture,,1,JPY\n",
		"a column lacks":   "charge_id,payment_id,type,refund_id,amount\nch_1,pay_1,capture,,1\n",
		"a column twice":   "amount," + simulatorHeader,
		"other separators": strings.ReplaceAll(simulatorHeader, ",", "\t"),
		"other case":       strings.ToUpper(simulatorHeader),
		"too long":         simulatorHeader + strings.Repeat("x", audit.MaxFile),
		"too many columns": strings.Repeat("x,", 200) + simulatorHeader,
	} {
		got, err := audit.ParseSettlement("simulator", text)
		if _, ok := errors.AsType[*audit.HeaderError](err); !ok || !reflect.DeepEqual(got, audit.Settlement{}) {
			t.Errorf("%s: got %+v, %v, want a HeaderError", name, got, err)
		}
	}
	if _, err := audit.ParseSettlement("another", simulatorHeader); !errors.Is(err, audit.ErrUnknownFormat) {
		t.Errorf("got %v, want ErrUnknownFormat", err)
	}
}

// Whatever the file holds, every row is used, listed or passed over, and what is
// used has an amount that there is.
func FuzzParseSettlement(f *testing.F) {
	header := "Psp Reference,Merchant Reference,Type,Modification Reference,Gross Currency,Gross Debit (GC),Gross Credit (GC)\n"
	for _, text := range []string{
		simulatorHeader + "ch_1,pay_1,capture,,5000,JPY\n", "\ufeff" + strings.ReplaceAll(simulatorHeader, ",", ";") + "ch_1;pay_1;refund;rf_1;1;EUR",
		simulatorHeader + "\"a\n\",,,,,\n\"", header + "A,pay_1,Settled,B,EUR,,12.00\nA,pay_1,Refunded,C,KWD,2.001,0\n", header + "A,pay_1,Settled,,JPY,0.00,1.0",
		simulatorHeader + "ch_1,pay_1,capture,,5000,JPY\nch_1,pay_1,capture,,5000,JPY\n", "", stripeHeader + "charge,eur,5.00,pi_1,ch_1,pay_1\npartial_capture_reversal,eur,-2.00,pi_1,re_0,pay_1\n", "\ufeff", simulatorHeader + "\r\n\r\n,\"\"\"\",",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, psp := range []string{"adyen", "simulator", "stripe"} {
			file, err := audit.ParseSettlement(psp, text)
			if err != nil && len(file.Entries)+len(file.Bad) > 0 {
				t.Fatalf("got rows beside %v", err)
			}
			lines := map[int]bool{}
			about := map[string]bool{}
			for _, e := range file.Entries {
				key := fmt.Sprint(e.Kind, "\x00", e.PaymentID, "\x00", e.Reference, "\x00", e.Refund)
				if e.Amount.Minor < 1 || e.Amount.Minor > money.Max || !e.Amount.Currency.Known() || e.PaymentID+e.Reference == "" || e.Line < 2 || lines[e.Line] || about[key] || e.Kind == audit.EntryRelease {
					t.Fatalf("got %+v, want each row once, with an amount", e)
				}
				lines[e.Line], about[key] = true, true
			}
			for _, row := range file.Bad {
				if row.Reason == "" || row.Line < 2 || lines[row.Line] {
					t.Fatalf("got %+v, want a line of its own and a reason", row)
				}
				lines[row.Line] = true
			}
			again, _ := audit.ParseSettlement(psp, text)
			if !reflect.DeepEqual(again, file) {
				t.Fatalf("got %+v, then %+v", file, again)
			}
		}
	})
}
