package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/webhook"
)

// Reconciliations are runs that compared what is here with the PSPs, and what they
// found. They are only shown: runs are started with the API.
type Reconciliations interface {
	Runs(ctx context.Context, cursor string, limit int) ([]audit.Run, string, error)
	// Run reads a run, or returns audit.ErrNotFound.
	Run(ctx context.Context, id string) (audit.Run, error)
	Findings(ctx context.Context, runID, cursor string, limit int) ([]audit.Finding, string, error)
}

type runsPage struct {
	frame
	Runs []audit.Run
	Next string
}

type runPage struct {
	frame
	Run      audit.Run
	Findings []audit.Finding
	Next     string
}

// reconciliation shows one run with its findings, or the list of runs.
func (h *Handler) reconciliation(ctx context.Context, r request, id string) (reply, error) {
	cursor := r.query.Get("cursor")
	if id == "" {
		runs, next, err := h.config.Table.Runs(ctx, cursor, pageSize)
		return reply{status: http.StatusOK, page: runsMarkup(runsPage{h.frame(r, "Reconciliations"), runs, next})}, err
	}
	if !validRun(id) {
		return reply{}, errNotFound
	}
	run, err := h.config.Table.Run(ctx, id)
	if err != nil {
		return reply{}, err
	}
	findings, next, err := h.config.Table.Findings(ctx, id, cursor, pageSize)
	return reply{status: http.StatusOK, page: runMarkup(runPage{h.frame(r, id), run, findings, next})}, err
}

func runsMarkup(p runsPage) g.Node {
	list := none("None. One is started with POST /v1/reconciliations.")
	if len(p.Runs) > 0 {
		list = h.Table(heads("Started", "Id", "PSP", "Status", "Findings", "Repaired", "Needs review"), g.Map(p.Runs, func(r audit.Run) g.Node {
			return cells(g.Text(stamp(r.CreatedAt)), h.A(h.Href(Path+"/reconciliations/"+r.ID), code(r.ID)), g.Text(r.PSP),
				g.Text(string(r.Status)), number(found(r)), number(r.Repaired), pressing(r.Review))
		}))
	}
	return inside(p.frame, h.H1(g.Text("Reconciliations")), list, onward(p.Next, "Older"))
}

func runMarkup(p runPage) g.Node {
	r := p.Run
	facts := []g.Node{
		fact("Status", g.Text(string(r.Status))),
		fact("PSP", g.Textf("%s, by its %s", r.PSP, r.Source)),
		fact("Started", g.Text(stamp(r.CreatedAt))),
		fact("Compared", g.Textf("%d charges, %d webhooks, %d payments", r.Charges, r.Webhooks, r.Payments)),
		fact("To repair", g.Text(map[bool]string{true: "yes", false: "no, only to look"}[r.Repair])),
		fact("Repaired", number(r.Repaired)), fact("Needs review", pressing(r.Review)),
	}
	if !r.From.IsZero() {
		facts = append(facts, fact("Period", g.Text(stamp(r.From)+" to "+stamp(r.To))))
	}
	if r.BadCount > 0 || r.PassedOver > 0 {
		facts = append(facts, fact("Rows of the file", g.Textf("%d could not be read, %d were passed over", r.BadCount, r.PassedOver)))
	}
	for _, kind := range audit.Kinds() {
		if n := r.Counts[kind]; n > 0 {
			facts = append(facts, fact("Findings: "+string(kind), number(n)))
		}
	}
	findings := none("None.")
	if len(p.Findings) > 0 {
		findings = h.Table(heads("Kind", "About", "There", "Here", "Repair", "At"), g.Map(p.Findings, findingRow))
	}
	return inside(p.frame, h.H1(g.Text("Reconciliation "), code(r.ID)), h.Table(facts...), h.H2(g.Text("Findings")), findings, onward(p.Next, "More findings"))
}

func findingRow(f audit.Finding) g.Node {
	about := []g.Node{}
	add := func(nodes ...g.Node) { about = append(about, h.Div(nodes...)) }
	if f.PaymentID != "" {
		add(linked(reconcile.KindPayment, string(f.PaymentID)))
	}
	if f.CheckoutID != "" {
		add(linked(reconcile.KindCheckout, f.CheckoutID))
	}
	if _, _, ok := webhook.ParseID(f.Webhook); ok {
		add(h.A(h.Href(Path+"/webhooks/"+f.Webhook), code(f.Webhook)))
	}
	if f.Reference != "" {
		add(g.Text("PSP reference "), code(f.Reference))
	}
	if f.Refund != "" {
		add(g.Text("refund "), code(f.Refund))
	}
	if f.Line > 0 {
		add(g.Textf("line %d of the file", f.Line))
	}
	repair := g.Node(g.Text(string(f.Repair)))
	if f.NeedsReview {
		repair = alert("needs review")
	}
	return cells(g.Text(string(f.Kind)), g.Group(about), g.Text(f.There), g.Text(f.Here), repair, g.Text(stamp(f.At)))
}

// found is how many findings a run has.
func found(r audit.Run) (n int64) {
	for _, count := range r.Counts {
		n += count
	}
	return n
}

func number(n int64) g.Node { return g.Text(strconv.FormatInt(n, 10)) }

// pressing is a number that somebody must do something about unless it is 0.
func pressing(n int64) g.Node {
	if n == 0 {
		return number(n)
	}
	return alert(strconv.FormatInt(n, 10))
}

// onward leads to the next page of a list, if there is one.
func onward(cursor, label string) g.Node {
	return g.If(cursor != "", h.P(h.A(h.Href("?cursor="+url.QueryEscape(cursor)), g.Text(label))))
}
