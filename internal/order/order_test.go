package order_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/storetest"
)

const merchant, checkout, address = "alpha", "chk_1", "a@example.com"

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC) }

func newTable() *memory.Table { return memory.New(memory.Options{Now: clock}) }

func purchase() order.Order {
	return order.Order{
		CheckoutID: checkout, MerchantID: merchant, PaymentID: "pay_1", Reference: "order-42",
		Lines:  []order.Line{{"tee", 2, 2000}, {"mug", 1, 1000}},
		Amount: money.Amount{Minor: 5000, Currency: "JPY"}, Email: address,
	}
}

func create(t testing.TB, p *order.Participant, o order.Order, want order.Answer) {
	t.Helper()
	if got, err := p.Create(t.Context(), o); err != nil || got != want {
		t.Errorf("create: got %+v %v, want %+v", got, err, want)
	}
}

func TestAnOrderIsShownToItsMerchantAlone(t *testing.T) {
	meter := storetest.NewMeter(newTable())
	p := order.New(meter, clock, nil)
	create(t, p, purchase(), order.Answer{Status: order.Confirmed, OrderID: "ord_1"})
	if got := meter.Count().Trips; got != 1 {
		t.Errorf("got %d trips, want 1", got)
	}
	o, err := p.Get(t.Context(), merchant, "ord_1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(o.View())
	want := `{"id":"ord_1","object":"order","checkout_id":"chk_1","payment_id":"pay_1","reference":"order-42","status":"confirmed",` +
		`"items":[{"sku":"tee","quantity":2,"unit_amount":2000},{"sku":"mug","quantity":1,"unit_amount":1000}],` +
		`"amount":5000,"currency":"JPY","customer":{"email":"a@example.com"},"created_at":"2026-01-02T03:04:05.678Z"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
	for _, at := range [][2]string{{"beta", "ord_1"}, {merchant, "ord_2"}, {merchant, ""}, {"", "ord_1"}, {merchant, "ord#1"}} {
		if o, err := p.Get(t.Context(), at[0], at[1]); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("%v: got %+v %v, want ErrNotFound", at, o, err)
		}
	}
	if list, err := p.ListByReference(t.Context(), "beta", "order-42", "", 20); err != nil || len(list.Orders) != 0 {
		t.Errorf("got %+v %v, want none of another merchant", list, err)
	}
	// The same checkout id under another merchant is another checkout.
	if err := p.Cancel(t.Context(), "beta", checkout); err != nil {
		t.Error(err)
	}
	if o, err := p.Get(t.Context(), merchant, "ord_1"); err != nil || o.Status != order.Confirmed {
		t.Errorf("got %+v %v, want still confirmed", o, err)
	}
}

func TestWhatIsUnknownIsNullInTheView(t *testing.T) {
	p := order.New(newTable(), clock, nil)
	o := purchase()
	o.Reference, o.Email = "", ""
	create(t, p, o, order.Answer{Status: order.Confirmed, OrderID: "ord_1"})
	o, err := p.Get(t.Context(), merchant, "ord_1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(o.View())
	if err != nil || !strings.Contains(string(got), `"reference":null`) || !strings.Contains(string(got), `"customer":null`) {
		t.Errorf("got %s %v, want null for both", got, err)
	}
}

func TestTheListOfAReferenceIsNewestFirstInPages(t *testing.T) {
	now := clock()
	p := order.New(newTable(), func() time.Time { return now }, nil)
	const all = 45
	for i := range all {
		o := purchase()
		o.CheckoutID = fmt.Sprintf("chk_%02d", (i*17)%all) // ids say nothing about the time
		create(t, p, o, order.Answer{Status: order.Confirmed, OrderID: order.ID(o.CheckoutID)})
		now = now.Add(time.Second)
	}
	other := purchase()
	other.CheckoutID, other.Reference = "chk_other", "order-421"
	create(t, p, other, order.Answer{Status: order.Confirmed, OrderID: "ord_other"})
	if err := p.Cancel(t.Context(), merchant, "chk_00"); err != nil {
		t.Fatal(err)
	}
	var got []order.Order
	pages, cursor := 0, ""
	for pages = 1; ; pages++ {
		list, err := p.ListByReference(t.Context(), merchant, "order-42", cursor, 20)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, list.Orders...)
		if cursor = list.Cursor; cursor == "" {
			break
		}
	}
	if len(got) != all || pages != 3 {
		t.Fatalf("got %d orders on %d pages, want %d on 3", len(got), pages, all)
	}
	for i, o := range got {
		if i > 0 && !o.CreatedAt.Before(got[i-1].CreatedAt) {
			t.Errorf("order %d: got %s after %s, want newest first", i, o.CreatedAt, got[i-1].CreatedAt)
		}
		if canceled := o.ID == "ord_00"; canceled != (o.Status == order.Canceled) {
			t.Errorf("order %s: got %s, want the status as it is", o.ID, o.Status)
		}
	}
	if _, err := p.ListByReference(t.Context(), merchant, "order-42", "nonsense", 20); !errors.Is(err, store.ErrCursor) {
		t.Errorf("got %v, want ErrCursor", err)
	}
	for _, reference := range []string{"", "a:b", strings.Repeat("x", 65), "nobody's"} {
		if list, err := p.ListByReference(t.Context(), merchant, reference, "", 20); err != nil || len(list.Orders) != 0 {
			t.Errorf("%q: got %+v %v, want an empty list", reference, list, err)
		}
	}
}

func TestARefusalIsKeptThoughTheRuleChanged(t *testing.T) {
	table := newTable()
	strict := order.New(table, clock, order.RefuseSKUsFrom("reject-"))
	lenient := order.New(table, clock, nil)
	o := purchase()
	o.Lines[1].SKU = "reject-mug"
	refused := order.Answer{Status: order.Rejected, Code: order.CodeRejected}
	create(t, strict, o, refused)
	create(t, lenient, o, refused)
	if got, err := lenient.Get(t.Context(), merchant, "ord_1"); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("got %+v %v, want no order", got, err)
	}
	if list, err := lenient.ListByReference(t.Context(), merchant, "order-42", "", 20); err != nil || len(list.Orders) != 0 {
		t.Errorf("got %+v %v, want no order", list, err)
	}
	for _, sku := range []string{"tee", "rejected", "not-reject-tee", "REJECT-tee"} {
		o := purchase()
		o.CheckoutID, o.Lines[1].SKU = "chk_"+sku, sku
		create(t, strict, o, order.Answer{Status: order.Confirmed, OrderID: "ord_" + sku})
	}
	o = purchase()
	o.CheckoutID, o.Lines[1].SKU = "chk_2", "reject-mug"
	create(t, lenient, o, order.Answer{Status: order.Confirmed, OrderID: "ord_2"})
	create(t, strict, o, order.Answer{Status: order.Confirmed, OrderID: "ord_2"})
}

func TestAMalformedOrderIsInvalid(t *testing.T) {
	tests := map[string]func(*order.Order){
		"no merchant":        func(o *order.Order) { o.MerchantID = "" },
		"separator":          func(o *order.Order) { o.MerchantID = "al#pha" },
		"no checkout":        func(o *order.Order) { o.CheckoutID = "" },
		"bare prefix":        func(o *order.Order) { o.CheckoutID = "chk_" },
		"another prefix":     func(o *order.Order) { o.CheckoutID = "ord_1" },
		"no payment":         func(o *order.Order) { o.PaymentID = "" },
		"colon in reference": func(o *order.Order) { o.Reference = "a:b" },
		"long reference":     func(o *order.Order) { o.Reference = strings.Repeat("x", 65) },
		"no such address":    func(o *order.Order) { o.Email = "nobody" },
		"no lines":           func(o *order.Order) { o.Lines = nil },
		"51 lines":           func(o *order.Order) { o.Lines = slices.Repeat([]order.Line{{"tee", 1, 1}}, 51); o.Amount.Minor = 51 },
		"no sku":             func(o *order.Order) { o.Lines[0].SKU = "" },
		"long sku":           func(o *order.Order) { o.Lines[0].SKU = strings.Repeat("x", 65) },
		"quantity 0":         func(o *order.Order) { o.Lines[0] = order.Line{"tee", 0, 2000}; o.Amount.Minor = 1000 },
		"quantity too large": func(o *order.Order) { o.Lines = []order.Line{{"tee", 499_951, 1}}; o.Amount.Minor = 499_951 },
		"negative price":     func(o *order.Order) { o.Lines[1].UnitAmount = -1; o.Amount.Minor = 3999 },
		"line overflows":     func(o *order.Order) { o.Lines[0].UnitAmount = math.MaxInt64; o.Amount.Minor = 998 },
		"sum overflows": func(o *order.Order) {
			o.Lines = []order.Line{{"a", 1, math.MaxInt64}, {"b", 1, math.MaxInt64}, {"c", 1, 5002}}
		},
		"amount is no sum": func(o *order.Order) { o.Amount.Minor = 5001 },
		"nothing to pay":   func(o *order.Order) { o.Amount.Minor = 0; o.Lines = []order.Line{{"tee", 1, 0}} },
		"more than a payment": func(o *order.Order) {
			o.Amount.Minor = money.Max + 1
			o.Lines = []order.Line{{"tee", 1, money.Max + 1}}
		},
		"unknown currency": func(o *order.Order) { o.Amount.Currency = "XXX" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			p := order.New(newTable(), clock, nil)
			o := purchase()
			change(&o)
			got, err := p.Create(t.Context(), o)
			if !errors.Is(err, order.ErrInvalid) {
				t.Fatalf("got %+v %v, want ErrInvalid", got, err)
			}
			if o.Email != "" && strings.Contains(err.Error(), o.Email.Reveal()) {
				t.Errorf("got %v, want no address in it", err)
			}
			if o, err := p.Get(t.Context(), merchant, "ord_1"); !errors.Is(err, order.ErrNotFound) {
				t.Errorf("got %+v %v, want nothing done", o, err)
			}
		})
	}
	p := order.New(newTable(), clock, nil)
	if err := p.Cancel(t.Context(), merchant, "ord_1"); !errors.Is(err, order.ErrInvalid) {
		t.Errorf("cancel: got %v, want ErrInvalid", err)
	}
}

func TestAnotherPurchaseOfTheSameCheckoutIsInvalid(t *testing.T) {
	tests := map[string]func(*order.Order){
		"payment":   func(o *order.Order) { o.PaymentID = "pay_2" },
		"reference": func(o *order.Order) { o.Reference = "order-43" },
		"quantity":  func(o *order.Order) { o.Lines = []order.Line{{"tee", 1, 2000}, {"mug", 3, 1000}} },
		"currency":  func(o *order.Order) { o.Amount.Currency = "USD" },
	}
	for _, take := range []order.Rule{nil, func(order.Order) (string, bool) { return "no", true }} {
		p := order.New(newTable(), clock, take)
		first, err := p.Create(t.Context(), purchase())
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range tests {
			o := purchase()
			change(&o)
			if got, err := p.Create(t.Context(), o); !errors.Is(err, order.ErrInvalid) {
				t.Errorf("%s: got %+v %v, want ErrInvalid", name, got, err)
			}
		}
		create(t, p, purchase(), first)
	}
}

func TestARefusedOrderKeepsNoAddress(t *testing.T) {
	table := newTable()
	create(t, order.New(table, clock, order.RefuseSKUsFrom("tee")), purchase(), order.Answer{Status: order.Rejected, Code: order.CodeRejected})
	item, err := table.Get(t.Context(), store.Key{PK: "ORDER#alpha#ord_1", SK: "STATE"})
	if err != nil || strings.Contains(fmt.Sprint(item), address) {
		t.Errorf("got %v %v, want no address in it", item, err)
	}
}

// Of two cancels at once the second changes nothing, not even the time.
func TestAnOrderIsCanceledOnce(t *testing.T) {
	table := newTable()
	now := clock()
	sure := order.New(table, func() time.Time { return now }, nil)
	create(t, sure, purchase(), order.Answer{Status: order.Confirmed, OrderID: "ord_1"})
	p := order.New(&tap{Table: table, before: func(call int) {
		if call == 2 {
			now = now.Add(time.Hour)
			if err := sure.Cancel(t.Context(), merchant, checkout); err != nil {
				t.Error(err)
			}
		}
	}}, clock, nil)
	if err := p.Cancel(t.Context(), merchant, checkout); err != nil {
		t.Error(err)
	}
	item, err := table.Get(t.Context(), store.Key{PK: "ORDER#alpha#ord_1", SK: "STATE"})
	if err != nil || item["status"] != "canceled" || item["updated_at"] != now.UnixMilli() {
		t.Errorf("got %v %v, want canceled at %d", item, err, now.UnixMilli())
	}
}

func TestNoWayOfPrintingShowsTheAddress(t *testing.T) {
	o := purchase()
	text := fmt.Sprintf("%v %+v %#v %s", o, o, o, o.Email)
	if strings.Contains(text, address) {
		t.Errorf("got %s, want no address in it", text)
	}
	if _, err := customer.ParseEmail(address); err != nil {
		t.Error(err)
	}
}

func TestSimultaneousExecutionsMakeOneOrder(t *testing.T) {
	table := newTable()
	p := order.New(table, clock, nil)
	answers := make([]order.Answer, 64)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = p.Create(t.Context(), purchase()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, a := range answers {
		if a != (order.Answer{Status: order.Confirmed, OrderID: "ord_1"}) {
			t.Errorf("got %+v, want the one order", a)
		}
	}
	list, err := p.ListByReference(t.Context(), merchant, "order-42", "", 20)
	if err != nil || len(list.Orders) != 1 {
		t.Errorf("got %+v %v, want one", list, err)
	}
}

// tap is a table whose calls a test can cut off or slip something before. It is
// for one goroutine.
type tap struct {
	store.Table
	calls  int
	before func(call int)
	lost   func(call int) fault
}

type fault int

const (
	none    fault = iota
	unsent        // the call has no effect and no answer
	unheard       // the call takes effect, its answer is lost
)

var errCut = errors.New("connection cut")

func (t *tap) next() fault {
	t.calls++
	call := t.calls
	if t.before != nil {
		t.before(call)
	}
	if t.lost != nil {
		return t.lost(call)
	}
	return none
}

func (t *tap) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if t.next() != none {
		return nil, errCut
	}
	return t.Table.Get(ctx, key)
}

func (t *tap) Write(ctx context.Context, writes ...store.Write) error {
	f := t.next()
	if f == unsent {
		return errCut
	}
	err := t.Table.Write(ctx, writes...)
	if f == unheard {
		return errCut
	}
	return err
}
