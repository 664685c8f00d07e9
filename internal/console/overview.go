package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

// The overview is what somebody should look at, the most urgent first: what waits for a
// person, quarantined webhooks, and what the sweep has not come to.

const (
	// duePage and duePages bound what is read of a shard: a dead endpoint's deliveries
	// may be thousands, and payments that are due stand between them.
	duePage  = 200
	duePages = 5
)

type overviewPage struct {
	frame
	Waiting         []payments.Review
	MoreWaiting     bool
	Quarantined     []webhook.Item
	MoreQuarantined bool
	Overdue         overdue
}

// overdue is what a sweep should have come to. Kinds that an operator can do nothing
// about one by one are only counted.
type overdue struct {
	rows   map[reconcile.Kind][]string // ids, pageSize at most
	counts map[reconcile.Kind]int
	more   bool // there is more than was counted
}

// listed are the kinds that have a page, by importance; counted are the others.
var (
	listed  = []reconcile.Kind{reconcile.KindPayment, reconcile.KindCheckout, reconcile.KindWebhook}
	counted = map[reconcile.Kind]string{
		reconcile.KindDelivery: "deliveries to merchants' endpoints", reconcile.KindHeartbeat: "heartbeats of the outbox",
		reconcile.KindRecovery: "recoveries of the outbox",
	}
)

func (h *Handler) overview(ctx context.Context, r request) (reply, error) {
	page := overviewPage{frame: h.frame(r, "Kessai")}
	var err error
	if page.Waiting, page.MoreWaiting, err = h.config.Table.InReview(ctx, pageSize); err != nil {
		return reply{}, err
	}
	var next string
	if page.Quarantined, next, err = h.config.Table.Webhooks(ctx, webhook.StatusQuarantined, "", pageSize); err != nil {
		return reply{}, err
	}
	page.MoreQuarantined = next != ""
	if page.Overdue, err = h.overdue(ctx); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusOK, page: overviewMarkup(page)}, nil
}

func (h *Handler) overdue(ctx context.Context) (overdue, error) {
	o := overdue{rows: map[reconcile.Kind][]string{}, counts: map[reconcile.Kind]int{}}
	now := h.config.Now()
	for shard := range h.config.Table.Shards() {
		cursor := ""
		for n := 0; n == 0 || n < duePages && cursor != ""; n++ {
			entries, next, err := h.config.Table.DuePage(ctx, shard, now, duePage, cursor)
			if err != nil {
				return o, err
			}
			for _, e := range entries {
				o.add(e)
			}
			cursor = next
		}
		o.more = o.more || cursor != ""
	}
	return o, nil
}

func (o *overdue) add(e reconcile.Due) {
	o.counts[e.Kind]++
	if len(o.rows[e.Kind]) < pageSize {
		o.rows[e.Kind] = append(o.rows[e.Kind], e.ID)
	}
}

// link is the page of something that may be due, "" if it has none.
func link(kind reconcile.Kind, id string) string {
	switch kind {
	case reconcile.KindPayment:
		return Path + "/payments/" + id
	case reconcile.KindCheckout:
		return Path + "/checkouts/" + id
	case reconcile.KindWebhook:
		name, eventID, _ := strings.Cut(id, "#")
		return Path + "/webhooks/" + webhook.Item{PSP: name, EventID: eventID}.ID()
	case reconcile.KindDelivery: // has no page: the merchant sees it with the event
	case reconcile.KindHeartbeat, reconcile.KindRecovery: // the outbox's own
	}
	return ""
}

// linked is an id that leads to its page, if there is one.
func linked(kind reconcile.Kind, id string) g.Node {
	to := link(kind, id)
	if to == "" || id == "" {
		return code(id)
	}
	return h.A(h.Href(to), code(id))
}

func overviewMarkup(p overviewPage) g.Node {
	waiting := none("Nothing.")
	if len(p.Waiting) > 0 {
		waiting = h.Table(heads("Since", "What", "Id", "Why"), g.Map(p.Waiting, func(r payments.Review) g.Node {
			return cells(g.Text(stamp(r.Since)), g.Text(string(r.Kind)), linked(r.Kind, r.ID), g.Text(why(r)))
		}))
	}
	return inside(p.frame,
		h.H1(g.Text("What needs a look")),
		h.H2(g.Text("Waits for a person")), waiting, g.If(p.MoreWaiting, none("There is more than is shown.")),
		h.H2(g.Text("Quarantined webhooks")), webhookTable(p.Quarantined),
		g.If(p.MoreQuarantined, h.P(h.A(h.Href(Path+"/webhooks"), g.Text("All quarantined webhooks")))),
		h.H2(g.Text("Due now")), overdueMarkup(p.Overdue))
}

// strandedWhy is why a payment waits for a person.
const strandedWhy = "money came after the payment had ended, and its refund failed: refund it again, or return the money at the PSP"

func why(r payments.Review) string {
	if r.Kind == reconcile.KindPayment {
		return strandedWhy
	}
	return r.Reason
}

func overdueMarkup(o overdue) g.Node {
	if len(o.counts) == 0 {
		return none("Nothing. The sweep keeps up.")
	}
	var rows, lines []g.Node
	for _, kind := range listed {
		for _, id := range o.rows[kind] {
			rows = append(rows, cells(g.Text(string(kind)), linked(kind, id)))
		}
		if left := o.counts[kind] - len(o.rows[kind]); left > 0 {
			lines = append(lines, none(quantity(left, o.more)+" more of kind "+string(kind)+" than is shown."))
		}
	}
	for _, kind := range []reconcile.Kind{reconcile.KindDelivery, reconcile.KindHeartbeat, reconcile.KindRecovery} {
		if n := o.counts[kind]; n > 0 {
			lines = append(lines, h.P(g.Text(quantity(n, o.more)+" "+counted[kind]+".")))
		}
	}
	if len(rows) > 0 {
		rows = append([]g.Node{h.Table(append([]g.Node{heads("Kind", "Id")}, rows...)...)}, lines...)
	} else {
		rows = lines
	}
	return g.Group(rows)
}

// since is when something began to wait, with who must act.
func since(at time.Time, reason string) g.Node {
	if reason != "" {
		reason = ": " + reason
	}
	return fact("Looked at next", alert("waits for an operator"), g.Text(" since "+stamp(at)+reason))
}
