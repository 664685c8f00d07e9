package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/merchant"
)

const pathReconciliations = "/v1/reconciliations"

// Reconciliations is what operators do to compare with a PSP.
type Reconciliations interface {
	// Start begins a run, or works on the one that an earlier request began.
	Start(ctx context.Context, r audit.Request) (run audit.Run, replayed bool, err error)
}

// ReconciliationLists reads what is known of runs. A malformed cursor is store.ErrCursor.
type ReconciliationLists interface {
	// Run reads consistently, or returns audit.ErrNotFound.
	Run(ctx context.Context, id string) (audit.Run, error)
	Runs(ctx context.Context, cursor string, limit int) ([]audit.Run, string, error)
	Findings(ctx context.Context, runID, cursor string, limit int) ([]audit.Finding, string, error)
}

func (h *Handler) reconciliationRoutes() []route {
	return []route{
		{http.MethodPost, pathReconciliations, merchant.RoleOperator, h.startReconciliation},
		{http.MethodGet, pathReconciliations, merchant.RoleOperator, h.listReconciliations},
		{http.MethodGet, pathReconciliations + "/{id}", merchant.RoleOperator, h.getReconciliation},
		{http.MethodGet, pathReconciliations + "/{id}/findings", merchant.RoleOperator, h.listFindings},
	}
}

// maxPeriod is the longest period that is compared: what the merchants' feeds remember.
const maxPeriod = 90 * 24 * time.Hour

var (
	ruleInstant = textRule{40, isInstant, "must be a time by RFC 3339"}
	ruleFile    = textRule{audit.MaxFile, nil, "must be a settlement file as text"}
)

func isInstant(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// newReconciliation is the body of a new reconciliation.
type newReconciliation struct {
	PSP    string `json:"psp"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Repair bool   `json:"repair,omitempty"`
	File   string `json:"file,omitempty"`
}

// boolean is a field that is true or false, false when it is left out or wrong.
func (f *form) boolean(name string) bool {
	v := f.take(name, optional)
	if v == nil {
		return false
	}
	if v.kind != jsontext.KindTrue && v.kind != jsontext.KindFalse {
		f.fault(name, "must be true or false")
	}
	return v.kind == jsontext.KindTrue
}

// instant is the time of a text that ruleInstant allows, zero for none.
func instant(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at.UTC().Truncate(time.Millisecond)
}

func (h *Handler) readReconciliation(c *call) (newReconciliation, error) {
	f, err := c.readForm()
	if err != nil {
		return newReconciliation{}, err
	}
	r := newReconciliation{PSP: f.text("psp", required, rulePSP), Repair: f.boolean("repair"), File: f.text("file", optional, ruleFile)}
	r.From, r.To = f.text("from", optional, ruleInstant), f.text("to", optional, ruleInstant)
	now := h.Now()
	from, to := instant(r.From), now
	if r.To != "" {
		to = instant(r.To)
	}
	switch {
	case r.From == "" && r.File == "" && len(*f.faults) == 0:
		f.fault("from", "is required without a file")
	case r.From == "" && r.To != "":
		f.fault("to", "needs a from")
	case r.From == "":
	case now.Sub(from) > maxPeriod:
		f.fault("from", "must be in the last 90 days")
	case !from.Before(to):
		f.fault("from", "must be before to")
	case to.After(now):
		f.fault("to", "must not be in the future")
	}
	return r, f.done()
}

// startReconciliation begins a run and works on it. While it is not done the answer
// is 202, and a repeat with the same key works on.
func (h *Handler) startReconciliation(ctx context.Context, c *call) (answer, error) {
	r, err := h.readReconciliation(c)
	if err != nil {
		return answer{}, err
	}
	print, err := fingerprint(r)
	if err != nil {
		return answer{}, err
	}
	request := audit.Request{Scope: c.scope(), Fingerprint: print, PSP: r.PSP, File: r.File, Repair: r.Repair}
	if r.From != "" {
		request.From, request.To = instant(r.From), h.Now()
	}
	if r.To != "" {
		request.To = instant(r.To)
	}
	run, replayed, err := h.Reconciliations.Start(ctx, request)
	if err != nil {
		return answer{}, err
	}
	location := pathReconciliations + "/" + run.ID
	a, err := accepted(viewRun(run), location)
	if run.Status != audit.StatusRunning {
		a, err = reply(http.StatusCreated, viewRun(run))
	}
	if err != nil {
		return answer{}, err
	}
	return a.at(location).replayed(replayed), nil
}

// runView is a run as operators see it.
type runView struct {
	ID          string               `json:"id"`
	Object      string               `json:"object"`
	PSP         string               `json:"psp"`
	Source      audit.Source         `json:"source"`
	From        *time.Time           `json:"from"`
	To          *time.Time           `json:"to"`
	Repair      bool                 `json:"repair"`
	Status      audit.Status         `json:"status"`
	Charges     int64                `json:"charges"`
	Webhooks    int64                `json:"webhooks"`
	Payments    int64                `json:"payments"`
	Counts      map[audit.Kind]int64 `json:"counts"`
	Repaired    int64                `json:"repaired"`
	NeedsReview int64                `json:"needs_review"`
	PassedOver  int64                `json:"passed_over_row_count"`
	BadRowCount int64                `json:"bad_row_count"`
	BadRows     []badRowView         `json:"bad_rows"`
	CreatedAt   time.Time            `json:"created_at"`
	UpdatedAt   time.Time            `json:"updated_at"`
}

type badRowView struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

func viewRun(r audit.Run) runView {
	v := runView{
		ID: r.ID, Object: "reconciliation", PSP: r.PSP, Source: r.Source, From: unlessZero(r.From), To: unlessZero(r.To), Repair: r.Repair,
		Status: r.Status, Charges: r.Charges, Webhooks: r.Webhooks, Payments: r.Payments, Counts: map[audit.Kind]int64{}, Repaired: r.Repaired, NeedsReview: r.Review,
		PassedOver: r.PassedOver, BadRowCount: r.BadCount, BadRows: []badRowView{}, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
	for _, kind := range audit.Kinds() {
		v.Counts[kind] = r.Counts[kind]
	}
	for _, row := range r.BadRows {
		v.BadRows = append(v.BadRows, badRowView(row))
	}
	return v
}

func unlessZero(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

// findingView is a finding as operators see it.
type findingView struct {
	Kind         audit.Kind    `json:"kind"`
	PaymentID    *string       `json:"payment_id"`
	CheckoutID   *string       `json:"checkout_id"`
	PSPReference *string       `json:"psp_reference"`
	Refund       *string       `json:"refund"`
	WebhookID    *string       `json:"webhook_id"`
	There        string        `json:"there"`
	Here         string        `json:"here"`
	Line         *int          `json:"line"`
	Repair       *audit.Repair `json:"repair"`
	NeedsReview  bool          `json:"needs_review"`
	At           time.Time     `json:"at"`
}

func viewFinding(f audit.Finding) findingView {
	v := findingView{
		Kind: f.Kind, PaymentID: unlessEmpty(string(f.PaymentID)), CheckoutID: unlessEmpty(f.CheckoutID), PSPReference: unlessEmpty(f.Reference),
		Refund: unlessEmpty(f.Refund), WebhookID: unlessEmpty(f.Webhook), There: f.There, Here: f.Here, NeedsReview: f.NeedsReview, At: f.At.UTC(),
	}
	if f.Line > 0 {
		v.Line = &f.Line
	}
	if f.Repair != audit.RepairNone {
		v.Repair = &f.Repair
	}
	return v
}

func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (h *Handler) listReconciliations(ctx context.Context, c *call) (answer, error) {
	at, err := c.paging(readLimit)
	if err != nil {
		return answer{}, err
	}
	runs, next, err := h.ReconciliationLists.Runs(ctx, at.cursor, at.limit)
	if err != nil {
		return answer{}, err
	}
	return page(runs, next, viewRun)
}

func (h *Handler) getReconciliation(ctx context.Context, c *call) (answer, error) {
	run, err := h.reconciliation(ctx, c)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, viewRun(run))
}

// reconciliation reads the run of the path.
func (h *Handler) reconciliation(ctx context.Context, c *call) (audit.Run, error) {
	id := c.params["id"]
	if !strings.HasPrefix(id, audit.IDPrefix) || !visibleASCII(id) || len(id) > maxRunID {
		return audit.Run{}, audit.ErrNotFound
	}
	return h.ReconciliationLists.Run(ctx, id)
}

// maxRunID is the length of a run's id.
const maxRunID = len(audit.IDPrefix) + 26

func (h *Handler) listFindings(ctx context.Context, c *call) (answer, error) {
	at, err := c.paging(scanLimit)
	if err != nil {
		return answer{}, err
	}
	run, err := h.reconciliation(ctx, c)
	if err != nil {
		return answer{}, err
	}
	findings, next, err := h.ReconciliationLists.Findings(ctx, run.ID, at.cursor, at.limit)
	if err != nil {
		return answer{}, err
	}
	return page(findings, next, viewFinding)
}

// paging reads cursor and limit of a list without other parameters.
func (c *call) paging(limit int) (paging, error) {
	q, err := c.query()
	if err != nil {
		return paging{}, err
	}
	return readPaging(q, limit)
}
