package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store/payments"
)

const pathCheckouts = "/v1/checkouts"

// Checkouts is the saga of orders.
type Checkouts interface {
	Create(ctx context.Context, r checkout.CreateRequest) (checkout.Result, error)
	// Get reads consistently; another merchant's is checkout.ErrNotFound, and
	// merchantID "" reads any merchant's.
	Get(ctx context.Context, merchantID, id string) (checkout.Result, error)
	Resume(ctx context.Context, r charge.Request, id string) (checkout.Result, error)
}

// CheckoutLists reads what is listed of checkouts. A malformed cursor is store.ErrCursor.
type CheckoutLists interface {
	CheckoutRows(ctx context.Context, id, cursor string, limit int) ([]payments.Row, string, error)
}

func (h *Handler) checkoutRoutes() []route {
	return []route{
		{http.MethodPost, pathCheckouts, merchant.RoleMerchant, h.createCheckout},
		{http.MethodGet, pathCheckouts + "/{id}", merchant.RoleMerchant, h.getCheckout},
		{http.MethodGet, pathCheckouts + "/{id}/events", merchant.RoleMerchant, h.listCheckoutEvents},
		{http.MethodPost, pathCheckouts + "/{id}/resume", merchant.RoleOperator, h.resumeCheckout},
	}
}

func checkoutLocation(id string) string { return pathCheckouts + "/" + id }

// newCheckout is the body of a new checkout. Its JSON form is what a fingerprint
// is taken of.
type newCheckout struct {
	Items         []checkout.Item `json:"items"` // as the basket had them
	Currency      string          `json:"currency"`
	PaymentMethod string          `json:"payment_method"`
	Email         string          `json:"email,omitzero"`
	Reference     string          `json:"reference,omitzero"`
	ReturnURL     string          `json:"return_url,omitzero"`
}

const (
	// maxItems of a basket: their writes fit in one transaction of the stock.
	maxItems = 50
	// maxQuantity of one item.
	maxQuantity = 9_999
)

func readNewCheckout(c *call) (r newCheckout, total int64, err error) {
	f, err := c.readForm()
	if err != nil {
		return newCheckout{}, 0, err
	}
	r = newCheckout{
		Items:         f.items("items"),
		Currency:      f.text("currency", required, ruleCurrency),
		PaymentMethod: f.text("payment_method", required, rulePaymentMethod),
		Email:         f.customer("customer"),
		Reference:     f.text("reference", optional, ruleReference),
		ReturnURL:     f.text("return_url", optional, ruleReturnURL),
	}
	if len(*f.faults) == 0 { // else a total means nothing
		if total, err = totalOf(r.Items); err != nil || total < 1 || total > money.Max {
			f.fault("items", fmt.Sprintf("must cost from 1 to %d together", money.Max))
		}
	}
	return r, total, f.done()
}

// items is the basket, nil when there is something wrong with it.
func (f *form) items(name string) []checkout.Item {
	v := f.take(name, required)
	if v == nil {
		return nil
	}
	if v.kind != '[' || len(v.elements) < 1 || len(v.elements) > maxItems {
		f.fault(name, fmt.Sprintf("must be a list of 1 to %d items", maxItems))
		return nil
	}
	items := make([]checkout.Item, 0, len(v.elements))
	for i := range v.elements {
		item, ok := f.inside(&v.elements[i], name+"["+strconv.Itoa(i)+"]")
		if !ok {
			continue
		}
		items = append(items, checkout.Item{
			SKU:        item.text("sku", required, ruleSKU),
			Quantity:   item.integer("quantity", required, 1, maxQuantity),
			UnitAmount: item.integer("unit_amount", required, 0, money.Max),
		})
		item.refuseUnknown()
	}
	return items
}

// customer is the e-mail address to notify, "" for none.
func (f *form) customer(name string) string {
	v := f.take(name, optional)
	if v == nil {
		return ""
	}
	buyer, ok := f.inside(v, name)
	if !ok {
		return ""
	}
	email := buyer.text("email", required, ruleEmail)
	buyer.refuseUnknown()
	return email
}

// inside is the fields of an object within this one; ok is false when it is none.
func (f *form) inside(v *value, name string) (inner *form, ok bool) {
	if v.kind != '{' {
		f.fault(name, "must be an object")
		return nil, false
	}
	return &form{object: *v, path: f.path + name + ".", asked: map[string]bool{}, faults: f.faults}, true
}

var ruleEmail = textRule{maxEmail, func(s string) bool {
	_, err := customer.ParseEmail(s)
	return err == nil
}, "must be one e-mail address"}

// maxEmail is the longest address that mail can be sent to (RFC 5321), in bytes.
const maxEmail = 254

// totalOf is what a basket costs, or money.ErrOverflow.
func totalOf(items []checkout.Item) (int64, error) {
	var total int64
	for _, item := range items {
		price, err := money.Multiply(item.UnitAmount, item.Quantity)
		if err != nil {
			return 0, err
		}
		if total, err = money.Add(total, price); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// merged adds equal SKUs up to one line for each price, in the basket's order: an
// order has to say what each piece cost. Stock is held for the sum of an SKU's
// lines.
func merged(basket []checkout.Item) []checkout.Item {
	var lines []checkout.Item
	for _, item := range basket {
		i := slices.IndexFunc(lines, func(l checkout.Item) bool {
			return l.SKU == item.SKU && l.UnitAmount == item.UnitAmount
		})
		if i < 0 {
			lines = append(lines, item)
			continue
		}
		lines[i].Quantity += item.Quantity // fifty times maxQuantity at most
	}
	return lines
}

func (h *Handler) createCheckout(ctx context.Context, c *call) (answer, error) {
	r, total, err := readNewCheckout(c)
	if err != nil {
		return answer{}, err
	}
	if !slices.Contains(h.Settings.PSPs, h.Settings.DefaultPSP) {
		return answer{}, charge.ErrUnknownPSP
	}
	request, err := c.chargeRequest(r)
	if err != nil {
		return answer{}, err
	}
	result, err := h.Checkouts.Create(ctx, checkout.CreateRequest{
		Request: request, Items: merged(r.Items), Email: customer.Email(r.Email),
		Terms: payment.Terms{
			MerchantID: c.principal.MerchantID, Amount: money.Amount{Minor: total, Currency: money.Currency(r.Currency)},
			CaptureMethod: payment.CaptureAutomatic, PaymentMethod: payment.Secret(r.PaymentMethod),
			Reference: r.Reference, ReturnURL: r.ReturnURL, PSP: h.Settings.DefaultPSP,
		},
	})
	c.paymentID, c.checkoutID = result.Payment.ID, result.Checkout.ID
	if err != nil {
		return answer{}, err
	}
	wait, preferred := c.preferredWait()
	replayed := result.Replayed
	if result, err = h.awaitCheckout(ctx, result, wait); err != nil {
		return answer{}, err
	}
	a, err := underWay(result.Checkout, viewCheckout(result))
	if err != nil {
		return answer{}, err
	}
	if preferred {
		a.header["Preference-Applied"] = "wait=" + strconv.Itoa(wait)
	}
	return a.replayed(replayed), nil
}

// underWay renders a checkout that was asked for, 202 while it is pending.
func underWay(c checkout.Checkout, v checkout.View) (answer, error) {
	if c.Status == checkout.StatusPending {
		return accepted(v, checkoutLocation(c.ID))
	}
	a, err := reply(http.StatusCreated, v)
	if err != nil {
		return answer{}, err
	}
	return a.at(checkoutLocation(c.ID)), nil
}

func viewCheckout(r checkout.Result) checkout.View { return r.Checkout.View(r.Payment.View()) }

// asShown is r as its merchant sees it: once the customer has acted there is nowhere
// to send them any more, so a checkout whose saga has not taken notice yet is pending.
func asShown(r checkout.Result) checkout.Result {
	if r.Checkout.Status == checkout.StatusRequiresAction && r.Payment.Status != payment.StatusRequiresAction {
		r.Checkout.Status = checkout.StatusPending
	}
	return r
}

// awaitCheckout reads a checkout again until it is not pending any more, for so
// many seconds.
func (h *Handler) awaitCheckout(ctx context.Context, r checkout.Result, seconds int) (checkout.Result, error) {
	r = asShown(r)
	first := true
	err := await(ctx, time.Duration(seconds)*time.Second, func() (bool, error) {
		if first { // what we have was read just now
			first = false
		} else {
			var err error
			if r, err = h.Checkouts.Get(ctx, r.Checkout.MerchantID, r.Checkout.ID); err != nil {
				return false, err
			}
			r = asShown(r)
		}
		return r.Checkout.Status != checkout.StatusPending, nil
	})
	return r, err
}

// ownCheckout reads the checkout of the path, which must be the caller's.
func (h *Handler) ownCheckout(ctx context.Context, c *call) (checkout.Result, error) {
	r, err := h.Checkouts.Get(ctx, c.principal.MerchantID, c.params["id"])
	c.paymentID = r.Payment.ID
	return r, err
}

func (h *Handler) getCheckout(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	seconds, err := queryInteger(q, "wait", 0, maxWaitSeconds, 0)
	if err != nil {
		return answer{}, err
	}
	r, err := h.ownCheckout(ctx, c)
	if err != nil {
		return answer{}, err
	}
	if r, err = h.awaitCheckout(ctx, r, seconds); err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, viewCheckout(r))
}

func (h *Handler) listCheckoutEvents(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	at, err := readPaging(q, scanLimit)
	if err != nil {
		return answer{}, err
	}
	r, err := h.ownCheckout(ctx, c)
	if err != nil {
		return answer{}, err
	}
	rows, next, err := h.CheckoutLists.CheckoutRows(ctx, r.Checkout.ID, at.cursor, at.limit)
	if err != nil {
		return answer{}, err
	}
	return page(rows, next, func(row payments.Row) event { return viewRow(r.Checkout.ID, row) })
}

// viewRow is a journal row of a payment or checkout as its merchant sees it.
func viewRow(subject string, r payments.Row) event {
	data := r.Data
	if data == nil {
		data = map[string]any{}
	}
	return event{outbox.EventID(subject, r.Version), r.Type, r.Version, r.At, r.Source, data}
}

// resumeCheckout drives a checkout of any merchant on. An operator sees no
// redirect address and no secret.
func (h *Handler) resumeCheckout(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	if err := f.done(); err != nil {
		return answer{}, err
	}
	request, err := c.chargeRequest(struct{}{})
	if err != nil {
		return answer{}, err
	}
	r, err := h.Checkouts.Resume(ctx, request, c.params["id"])
	c.paymentID = r.Payment.ID
	if err != nil {
		return answer{}, err
	}
	a, err := accepted(asShown(r).Checkout.View(r.Payment.PublicView()), checkoutLocation(r.Checkout.ID))
	if err != nil {
		return answer{}, err
	}
	return a.replayed(r.Replayed), nil
}

var ruleSKU = textRule{maxSKU, validSKU, "must be 1 to 64 printable ASCII characters without spaces and slashes"}

// maxSKU is the longest SKU in characters, as the stock and the orders keep it.
const maxSKU = 64

// validSKU allows what can stand in a path as it is.
func validSKU(s string) bool {
	return visibleASCII(s) && !slices.Contains([]byte(s), '/') && inventory.ValidSKU(s)
}
