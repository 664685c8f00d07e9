package console

import (
	"time"

	g "maragu.dev/gomponents"
	c "maragu.dev/gomponents/components"
	h "maragu.dev/gomponents/html"

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
		h.Form(h.Action(Path+"/find"), h.Method("get"),
			h.Input(h.Name("id"), g.Attr("size", "36"), h.Placeholder("pay_…, chk_… or wh_…"), h.Aria("label", "id")), g.Text(" "),
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

func overviewMarkup(p overviewPage) g.Node {
	dueNow := none("Nothing. The sweep keeps up.")
	if len(p.Due) > 0 {
		dueNow = h.Table(heads("Kind", "Id"), g.Map(p.Due, func(d due) g.Node {
			return cells(g.Text(d.Kind), h.A(h.Href(d.Link), code(d.ID)))
		}))
	}
	return inside(p.frame,
		h.H1(g.Text("What needs a look")),
		h.H2(g.Text("Due now")), dueNow, g.If(p.More, none("There is more than is shown. The sweep is behind.")),
		h.H2(g.Text("Quarantined webhooks")), webhookTable(p.Quarantined))
}

func webhookTable(items []webhook.Item) g.Node {
	if len(items) == 0 {
		return none("None.")
	}
	return h.Table(heads("Received", "PSP", "Type", "Event", "Payment", "Why"), g.Map(items, func(it webhook.Item) g.Node {
		return cells(g.Text(stamp(it.ReceivedAt)), g.Text(it.PSP), g.Text(it.Type),
			h.A(h.Href(Path+"/webhooks/"+it.ID()), code(it.EventID)), code(string(it.PaymentID)), g.Text(it.Reason))
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
		fact("Amount", g.Textf("%d %s in minor units, captured %d, refunded %d", v.Amount, v.Currency, v.AmountCaptured, v.AmountRefunded)),
		fact("Reference", text(v.Reference)),
		fact("PSP", g.Text(v.PSP+" "), h.Code(text(v.PSPReference))),
	}
	if v.Failure != nil {
		facts = append(facts, fact("Failure", g.Text(v.Failure.Code+" "), text(v.Failure.DeclineCode)))
	}
	if p.CheckoutID != "" {
		facts = append(facts, fact("Checkout", h.A(h.Href(Path+"/checkouts/"+p.CheckoutID), code(p.CheckoutID))))
	}
	body := []g.Node{h.H1(g.Text("Payment "), code(string(v.ID))), h.Table(append(facts, looked(p.DueAt))...)}
	if len(v.Refunds) > 0 {
		refunds := []g.Node{heads("Id", "Status", "Amount", "Reason", "PSP reference")}
		for _, r := range v.Refunds {
			refunds = append(refunds, cells(code(string(r.ID)), g.Text(string(r.Status)), g.Textf("%d", r.Amount), text(r.Reason), h.Code(text(r.PSPReference))))
		}
		body = append(body, h.H2(g.Text("Refunds")), h.Table(refunds...))
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
		fact("Amount", g.Textf("%d %s in minor units", v.Amount, v.Currency)),
		fact("Payment", h.A(h.Href(Path+"/payments/"+string(v.Payment.ID)), code(string(v.Payment.ID))), g.Text(" "+string(v.Payment.Status))),
		fact("Order", h.Code(text(v.OrderID))),
	}
	if v.Failure != nil {
		facts = append(facts, fact("Failure", g.Text(v.Failure.Code+" "), text(v.Failure.DeclineCode)))
	}
	return inside(p.frame,
		h.H1(g.Text("Checkout "), code(v.ID)), h.Table(append(facts, looked(p.DueAt))...),
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
				fact("Payment", h.A(h.Href(Path+"/payments/"+string(it.PaymentID)), code(string(it.PaymentID)))),
				fact("Received", g.Text(stamp(it.ReceivedAt))), fact("Attempts", g.Textf("%d", it.Attempts))),
			action(p.frame, Path+"/webhooks/"+it.ID()+"/replay", "Replay"))
	}
	links := g.Map(p.Statuses, func(s webhook.Status) g.Node {
		return g.Group{h.A(h.Href(Path+"/webhooks?status="+string(s)), g.Text(string(s))), g.Text(" ")}
	})
	older := h.A(h.Href("?status="+string(p.Status)+"&cursor="+p.Next), g.Text("Older"))
	return inside(p.frame, h.H1(g.Text("Webhooks: "+string(p.Status))), h.P(links), webhookTable(p.Items), g.If(p.Next != "", h.P(older)))
}
