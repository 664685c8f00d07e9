package console

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	c "maragu.dev/gomponents/components"
	h "maragu.dev/gomponents/html"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/webhook"
)

// The pages' markup. Every text goes through an escaping node; nothing here is raw
// but the style sheet.

const style = `
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem 1.5rem 4rem; color: #1c2330; background: #fafafa; }
header { display: flex; gap: 1.5rem; align-items: center; border-bottom: 1px solid #d8dce4; padding-bottom: .6rem; margin-bottom: 1.2rem; }
header a { color: inherit; text-decoration: none; } header a.home { font-weight: 700; } header form { margin-left: auto; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 1.8rem; }
table { border-collapse: collapse; width: 100%; background: #fff; } th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border: 1px solid #e2e5eb; }
th { font-weight: 600; background: #f1f3f7; white-space: nowrap; } td.data { font: 12px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
input { font: inherit; padding: .3rem .5rem; border: 1px solid #b6bdca; border-radius: 4px; }
button { font: inherit; padding: .3rem .9rem; border: 1px solid #2b4c8c; border-radius: 4px; background: #2f5bb0; color: #fff; cursor: pointer; }
button.plain { background: none; color: inherit; border-color: #b6bdca; }
.none { color: #6a7383; } .alert { color: #a1260d; font-weight: 600; }
`

// document is a whole page.
func document(title string, body ...g.Node) g.Node {
	return c.HTML5(c.HTML5Props{
		Title: title, Language: "en",
		Head: []g.Node{h.StyleEl(g.Raw(style))}, Body: body,
	})
}

// inside is a page with the bar that every page of a session has.
func inside(f frame, body ...g.Node) g.Node {
	bar := h.Header(
		h.A(h.Class("home"), h.Href(Path), g.Text("Kessai")),
		h.A(h.Href(Path+"/webhooks"), g.Text("Webhooks")),
		h.A(h.Href(Path+"/reconciliations"), g.Text("Reconciliations")),
		h.Form(h.Action(Path+"/find"), h.Method("get"),
			h.Input(h.Name("id"), g.Attr("size", "36"), h.Placeholder("pay_…, chk_…, wh_… or rec_…"), h.Aria("label", "id")), g.Text(" "),
			h.Button(h.Class("plain"), g.Text("Find"))),
		h.Form(h.Action(Path+"/logout"), h.Method("post"), hidden("token", f.Token), h.Button(h.Class("plain"), g.Text("Log out"))),
	)
	return document(f.Title, append([]g.Node{bar}, body...)...)
}

func hidden(name, value string) g.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

// action is a form with one button, with what proves the session and the key
// that makes a second click harmless.
func action(f frame, path, label string) g.Node {
	return h.Form(h.Action(path), h.Method("post"), h.P(hidden("token", f.Token), hidden("key", f.Key), h.Button(g.Text(label))))
}

func loginMarkup(refused bool) g.Node {
	return document("Kessai: log in",
		h.H1(g.Text("Log in")),
		g.If(refused, h.P(h.Class("alert"), g.Text("That is not the operator's key."))),
		h.Form(h.Action(Path+"/login"), h.Method("post"),
			h.Label(g.Text("Operator key "), h.Input(h.Type("password"), h.Name("key"), g.Attr("size", "40"),
				h.AutoComplete("current-password"), h.AutoFocus(), h.Required())), g.Text(" "),
			h.Button(g.Text("Log in"))))
}

func messageMarkup(text string) g.Node {
	return document("Kessai", h.P(g.Text(text)), h.P(h.A(h.Href(Path), g.Text("To the console"))))
}

func none(text string) g.Node { return h.P(h.Class("none"), g.Text(text)) }

func code(text string) g.Node { return h.Code(g.Text(text)) }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z") }

// heads is the first row of a table.
func heads(names ...string) g.Node {
	return h.Tr(g.Map(names, func(name string) g.Node { return h.Th(g.Text(name)) }))
}

// cells is a row of texts.
func cells(nodes ...g.Node) g.Node {
	return h.Tr(g.Map(nodes, func(n g.Node) g.Node { return h.Td(n) }))
}

// fact is a row of a table of facts.
func fact(name string, nodes ...g.Node) g.Node { return h.Tr(h.Th(g.Text(name)), h.Td(nodes...)) }

// amount is money as people write it.
func amount(minor int64, currency string) string {
	return money.Amount{Minor: minor, Currency: money.Currency(currency)}.String()
}

// quantity is a number in words, which is a least one if not all was counted.
func quantity(n int, more bool) string {
	if more {
		return fmt.Sprintf("At least %d", n)
	}
	return strconv.Itoa(n)
}

func text(s *string) g.Node {
	if s == nil {
		return g.Text("")
	}
	return g.Text(*s)
}

// looked is when somebody looks next.
func looked(at time.Time) g.Node {
	if at.IsZero() {
		return fact("Looked at next", h.Span(h.Class("none"), g.Text("at rest")))
	}
	return fact("Looked at next", g.Text(stamp(at)))
}

func webhookTable(items []webhook.Item) g.Node {
	if len(items) == 0 {
		return none("None.")
	}
	return h.Table(heads("Received", "PSP", "Type", "Event", "Payment", "Why"), g.Map(items, func(it webhook.Item) g.Node {
		return cells(g.Text(stamp(it.ReceivedAt)), g.Text(it.PSP), g.Text(it.Type),
			h.A(h.Href(Path+"/webhooks/"+it.ID()), code(it.EventID)), linked(reconcile.KindPayment, string(it.PaymentID)), g.Text(it.Reason))
	}))
}

func journalTable(rows []row) g.Node {
	return g.Group{h.H2(g.Text("Journal")), h.Table(heads("Version", "At", "What", "Source", "Data"), g.Map(rows, func(r row) g.Node {
		return h.Tr(h.Td(g.Textf("%d", r.Version)), h.Td(g.Text(stamp(r.At))), h.Td(g.Text(r.Type)), h.Td(g.Text(r.Source)),
			h.Td(h.Class("data"), g.Text(r.Data)))
	}))}
}

func paymentMarkup(p paymentPage) g.Node {
	v := p.Payment
	facts := []g.Node{
		fact("Status", g.Text(string(v.Status)), g.If(v.InDoubt, alert(" in doubt")), g.If(v.Disputed, alert(" disputed"))),
		fact("Version", g.Textf("%d", v.Version)),
		fact("Merchant", g.Text(p.MerchantID)),
		fact("Amount", g.Textf("%s, captured %s, refunded %s", amount(v.Amount, v.Currency), amount(v.AmountCaptured, v.Currency), amount(v.AmountRefunded, v.Currency))),
		fact("Reference", text(v.Reference)),
		fact("PSP", g.Text(v.PSP+" "), h.Code(text(v.PSPReference))),
		fact("Created", g.Text(stamp(v.CreatedAt))),
	}
	for _, key := range slices.Sorted(maps.Keys(v.Metadata)) {
		facts = append(facts, fact("Metadata: "+key, g.Text(v.Metadata[key])))
	}
	if v.Failure != nil {
		facts = append(facts, fact("Failure", g.Text(v.Failure.Code+" "), text(v.Failure.DeclineCode)))
	}
	if p.CheckoutID != "" {
		facts = append(facts, fact("Checkout", h.A(h.Href(Path+"/checkouts/"+p.CheckoutID), code(p.CheckoutID))))
	}
	look := looked(p.DueAt)
	if p.Stranded {
		look = since(v.UpdatedAt, strandedWhy)
	}
	body := []g.Node{h.H1(g.Text("Payment "), code(string(v.ID))), h.Table(append(facts, look)...)}
	if len(v.Refunds) > 0 {
		refunds := []g.Node{heads("Id", "Status", "Amount", "Reason", "PSP reference")}
		for _, r := range v.Refunds {
			refunds = append(refunds, cells(code(string(r.ID)), g.Text(string(r.Status)), g.Text(amount(r.Amount, r.Currency)), text(r.Reason), h.Code(text(r.PSPReference))))
		}
		body = append(body, h.H2(g.Text("Refunds")), h.Table(refunds...))
	}
	if len(v.Disputes) > 0 {
		disputes := []g.Node{heads("PSP reference", "Status", "Amount", "Result")}
		for _, d := range v.Disputes {
			disputes = append(disputes, cells(code(d.ID), g.Text(string(d.Status)), g.Text(amount(d.Amount, v.Currency)), text(d.Result)))
		}
		body = append(body, h.H2(g.Text("Disputes")), h.Table(disputes...))
	}
	body = append(body, journalTable(p.Rows), g.If(p.Next != "", h.P(h.A(h.Href("?cursor="+p.Next), g.Text("Later rows")))))
	return inside(p.frame, body...)
}

func alert(text string) g.Node { return h.Span(h.Class("alert"), g.Text(text)) }

func checkoutMarkup(p checkoutPage) g.Node {
	v := p.Checkout
	facts := []g.Node{
		fact("Status", g.Textf("%s, %s", v.Status, p.Direction)),
		fact("Merchant", g.Text(p.MerchantID)),
		fact("Amount", g.Text(amount(v.Amount, v.Currency))),
		fact("Payment", h.A(h.Href(Path+"/payments/"+string(v.Payment.ID)), code(string(v.Payment.ID))), g.Text(" "+string(v.Payment.Status))),
		fact("Order", h.Code(text(v.OrderID))),
	}
	if v.Failure != nil {
		facts = append(facts, fact("Failure", g.Text(v.Failure.Code+" "), text(v.Failure.DeclineCode)))
	}
	look := looked(p.DueAt)
	if v.Status == checkout.StatusNeedsReview {
		look = since(v.UpdatedAt, p.Reason)
	}
	return inside(p.frame,
		h.H1(g.Text("Checkout "), code(v.ID)), h.Table(append(facts, look)...),
		g.If(p.Resumable, action(p.frame, Path+"/checkouts/"+v.ID+"/resume", "Drive it on")),
		journalTable(p.Rows))
}

func webhookMarkup(p webhookPage) g.Node {
	if p.Item != nil {
		it := *p.Item
		return inside(p.frame,
			h.H1(g.Text("Webhook "), code(it.EventID)),
			h.Table(
				fact("Status", g.Text(string(it.Status)), g.If(it.Reason != "", g.Text(": "+it.Reason))),
				fact("PSP", g.Text(it.PSP)), fact("Type", g.Text(it.Type)),
				fact("Payment", linked(reconcile.KindPayment, string(it.PaymentID))),
				fact("Received", g.Text(stamp(it.ReceivedAt))), fact("Attempts", g.Textf("%d", it.Attempts))),
			action(p.frame, Path+"/webhooks/"+it.ID()+"/replay", "Replay"))
	}
	older := h.A(h.Href("?status="+string(p.Status)+"&cursor="+p.Next), g.Text("Older"))
	return inside(p.frame, h.H1(g.Text("Webhooks: "+string(p.Status))), statusLinks(p.Statuses), webhookTable(p.Items), g.If(p.Next != "", h.P(older)))
}

func statusLinks(statuses []webhook.Status) g.Node {
	return h.P(g.Map(statuses, func(s webhook.Status) g.Node {
		return g.Group{h.A(h.Href(Path+"/webhooks?status="+string(s)), g.Text(string(s))), g.Text(" ")}
	}))
}

// statusMarkup is the answer to a status that there is none of.
func statusMarkup(p webhookPage) g.Node {
	return inside(p.frame, h.H1(g.Text("Webhooks")), h.P(alert("There is no such status."), g.Text(" These are:")), statusLinks(p.Statuses))
}

// findMarkup says what can be found.
func findMarkup(f frame, id string) g.Node {
	return inside(f, h.H1(g.Text("Nothing has the id "), code(id)),
		h.P(g.Text("What can be found by its id: a payment, pay_…, a checkout, chk_…, a webhook, wh_…, a reconciliation, rec_…")),
		h.P(g.Text("A refund, re_…, is on the page of its payment: its event and its log lines name it as payment_id. "+
			"A merchant's own reference is looked up with that merchant's key: GET /v1/payments?reference=…")))
}
