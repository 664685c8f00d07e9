package payments

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
)

// Places of reconciliations: everything of a run is below it, and a row in one list
// points to it. Runs are few, by hand or by a schedule: one partition holds the list.
const (
	pkAudit   = "RECONCILIATION#"
	pkAudits  = "RECONCILIATIONS"
	skFile    = "FILE"
	skFinding = "FINDING#"
	skMet     = "MET#"
)

func auditKey(id string) store.Key { return store.Key{PK: pkAudit + id, SK: skState} }

func auditFileKey(id string) store.Key { return store.Key{PK: pkAudit + id, SK: skFile} }

func auditListKey(id string) store.Key { return store.Key{PK: pkAudits, SK: id} }

// findingKey is the place of a finding: by what it is about, so that the same
// difference seen twice is one.
func findingKey(runID string, f audit.Finding) store.Key {
	about := fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s\x00%d\x00%s", f.Kind, f.PaymentID, f.CheckoutID, f.Reference, f.Refund, f.Line, f.Webhook)
	sum := sha256.Sum256([]byte(about))
	return store.Key{PK: pkAudit + runID, SK: skFinding + hex.EncodeToString(sum[:16])}
}

func metKey(runID string, page int) store.Key {
	return store.Key{PK: pkAudit + runID, SK: fmt.Sprintf("%s%010d", skMet, page)}
}

// auditForget is how long a run and its findings are kept: over a year, for whoever
// checks the books.
const auditForget = 400 * 24 * time.Hour

// Counters of a run's item. They are added to by findings, whatever the version.
const (
	prefixCount  = "count_"
	attrRepaired = "repaired"
	attrReview   = "review"
)

// progress is what SaveRun writes of a run.
func progress(r audit.Run) store.Item {
	f := fields{}
	f.num(attrVersion, r.Version)
	f.str(attrStatus, string(r.Status))
	f.str("phase", string(r.Phase))
	f.str("cursor", r.Cursor)
	f.str("merchant", r.Merchant)
	f.num("pages", int64(r.Pages))
	f.num("stops", int64(r.Stops))
	f.num("charges", r.Charges)
	f.num("webhooks", r.Webhooks)
	f.num("payments", r.Payments)
	f.time("updated_at", r.UpdatedAt)
	return store.Item(f)
}

func encodeRun(r audit.Run) store.Item {
	f := fields(progress(r))
	f.str("psp", r.PSP)
	f.str("source", string(r.Source))
	f.time("from", r.From)
	f.time("to", r.To)
	f.flag("repair", r.Repair)
	f.num("bad_count", r.BadCount)
	f.num("passed_over", r.PassedOver)
	bad := make([]any, 0, len(r.BadRows))
	for _, row := range r.BadRows {
		bad = append(bad, map[string]any{"line": int64(row.Line), "reason": row.Reason})
	}
	f["bad_rows"] = bad
	f.time("created_at", r.CreatedAt)
	f[store.AttrExpiresAt] = r.CreatedAt.Add(auditForget).Unix()
	return store.Item(f)
}

func decodeRun(id string, item store.Item) audit.Run {
	r := reader(item)
	run := audit.Run{
		ID: id, PSP: r.str("psp"), Source: audit.Source(r.str("source")), From: r.time("from"), To: r.time("to"), Repair: r.flag("repair"),
		Status: audit.Status(r.str(attrStatus)), Version: r.num(attrVersion), Phase: audit.Phase(r.str("phase")), Cursor: r.str("cursor"),
		Merchant: r.str("merchant"), Pages: int(r.num("pages")), Stops: int(r.num("stops")), Charges: r.num("charges"), Webhooks: r.num("webhooks"), Payments: r.num("payments"),
		Counts: map[audit.Kind]int64{}, Repaired: r.num(attrRepaired), Review: r.num(attrReview), BadCount: r.num("bad_count"), PassedOver: r.num("passed_over"),
		CreatedAt: r.time("created_at"), UpdatedAt: r.time("updated_at"),
	}
	for _, kind := range audit.Kinds() {
		run.Counts[kind] = r.num(prefixCount + string(kind))
	}
	rows, _ := r["bad_rows"].([]any)
	for _, row := range rows {
		m, _ := row.(map[string]any)
		run.BadRows = append(run.BadRows, audit.BadRow{Line: int(reader(m).num("line")), Reason: reader(m).str("reason")})
	}
	return run
}

// Run reads a run consistently, or returns audit.ErrNotFound.
func (t *Table) Run(ctx context.Context, id string) (audit.Run, error) {
	item, err := t.table.Get(ctx, auditKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return audit.Run{}, audit.ErrNotFound
	}
	if err != nil {
		return audit.Run{}, err
	}
	return decodeRun(id, item), nil
}

// Runs lists the runs, newest first, a page at a time.
func (t *Table) Runs(ctx context.Context, cursor string, limit int) ([]audit.Run, string, error) {
	page, err := t.table.Query(ctx, store.Query{PK: pkAudits, Descending: true, Limit: min(limit, maxPage), Cursor: cursor})
	if err != nil {
		return nil, "", fmt.Errorf("list reconciliations: %w", err)
	}
	var runs []audit.Run
	for _, e := range page.Entries {
		run, err := t.Run(ctx, e.Key.SK)
		if errors.Is(err, audit.ErrNotFound) { // forgotten before its place in the list
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("list reconciliations: %w", err)
		}
		runs = append(runs, run)
	}
	return runs, page.Cursor, nil
}

// CreateRun writes a run, its file and the claim of its request in one transaction.
func (t *Table) CreateRun(ctx context.Context, r audit.Run, file string, claim idempotency.Claim) error {
	forget := r.CreatedAt.Add(auditForget).Unix()
	parts := []part{
		{store.Write{Kind: store.Put, Key: auditKey(r.ID), Item: encodeRun(r), If: store.Absent()}, movedOn},
		{store.Write{Kind: store.Put, Key: auditListKey(r.ID), Item: store.Item{store.AttrExpiresAt: forget}}, movedOn},
		claimPart(claim),
	}
	if file != "" {
		item := store.Item{"text": file, store.AttrExpiresAt: forget}
		parts = append(parts, part{store.Write{Kind: store.Put, Key: auditFileKey(r.ID), Item: item}, movedOn})
	}
	return t.commit(ctx, parts)
}

// File reads the settlement file of a run.
func (t *Table) File(ctx context.Context, id string) (string, error) {
	item, err := t.table.Get(ctx, auditFileKey(id))
	if err != nil {
		return "", err
	}
	return reader(item).str("text"), nil
}

// summary is what the event of a run that has ended says.
type summary struct {
	Status   audit.Status         `json:"status"`
	PSP      string               `json:"psp"`
	Source   audit.Source         `json:"source"`
	Repair   bool                 `json:"repair"`
	Charges  int64                `json:"charges"`
	Webhooks int64                `json:"webhooks"`
	Payments int64                `json:"payments"`
	Counts   map[audit.Kind]int64 `json:"counts"`
	Repaired int64                `json:"repaired"`
	Review   int64                `json:"needs_review"`
	BadRows  int64                `json:"bad_rows"`
	Passed   int64                `json:"passed_over_rows"`
}

// SaveRun writes how far a run has come, if it is still at the version before.
func (t *Table) SaveRun(ctx context.Context, r audit.Run, met []payment.ID) error {
	set := progress(r)
	var remove []string
	for _, name := range []string{"cursor", "merchant", "stops"} {
		if _, there := set[name]; !there {
			remove = append(remove, name)
		}
	}
	unmoved := store.Equal(attrVersion, r.Version-1)
	writes := []store.Write{{Kind: store.Update, Key: auditKey(r.ID), Set: set, Remove: remove, If: unmoved}}
	if len(met) > 0 {
		ids := make([]any, len(met))
		for i, id := range met {
			ids[i] = string(id)
		}
		item := store.Item{"ids": ids, store.AttrExpiresAt: r.CreatedAt.Add(auditForget).Unix()}
		writes = append(writes, store.Write{Kind: store.Put, Key: metKey(r.ID, r.Pages), Item: item})
	}
	if r.Status != audit.StatusRunning {
		row, err := rowPart(stored{
			pk: pkAudit + r.ID, version: 1, kind: "reconciliation." + string(r.Status), at: r.UpdatedAt, source: journal.SourceReconciler,
			data: summary{r.Status, r.PSP, r.Source, r.Repair, r.Charges, r.Webhooks, r.Payments, r.Counts, r.Repaired, r.Review, r.BadCount, r.PassedOver},
		})
		if err != nil {
			return err
		}
		writes = append(writes, row.write)
	}
	err := t.table.Write(ctx, writes...)
	if _, lost := errors.AsType[*store.ConditionError](err); lost {
		return audit.ErrConflict
	}
	return err
}

// Met calls do for every payment that pages of the run have met.
func (t *Table) Met(ctx context.Context, id string, do func(payment.ID)) error {
	q := store.Query{PK: pkAudit + id, SKPrefix: skMet, Limit: maxPage}
	for {
		page, err := t.table.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			ids, _ := e.Item["ids"].([]any)
			for _, id := range ids {
				text, _ := id.(string)
				do(payment.ID(text))
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return nil
		}
	}
}

func encodeFinding(f audit.Finding) store.Item {
	i := fields{}
	i.str("kind", string(f.Kind))
	i.str(attrPaymentID, string(f.PaymentID))
	i.str("checkout_id", f.CheckoutID)
	i.str("psp_reference", f.Reference)
	i.str("refund", f.Refund)
	i.str("webhook_id", f.Webhook)
	i.str("there", f.There)
	i.str("here", f.Here)
	i.num("line", int64(f.Line))
	i.str("repair", string(f.Repair))
	i.flag("needs_review", f.NeedsReview)
	i.time("at", f.At)
	i[store.AttrExpiresAt] = f.At.Add(auditForget).Unix()
	return store.Item(i)
}

func decodeFinding(item store.Item) audit.Finding {
	r := reader(item)
	return audit.Finding{
		Kind: audit.Kind(r.str("kind")), PaymentID: payment.ID(r.str(attrPaymentID)), CheckoutID: r.str("checkout_id"),
		Reference: r.str("psp_reference"), Refund: r.str("refund"), Webhook: r.str("webhook_id"), There: r.str("there"), Here: r.str("here"), Line: int(r.num("line")),
		Repair: audit.Repair(r.str("repair")), NeedsReview: r.flag("needs_review"), At: r.time("at"),
	}
}

// AddFinding writes a finding that is not there yet, and counts it in the same
// transaction: once, however often it is found. Fresh is false for one that was there.
func (t *Table) AddFinding(ctx context.Context, runID string, f audit.Finding) (fresh bool, err error) {
	add := map[string]int64{prefixCount + string(f.Kind): 1}
	if f.NeedsReview {
		add[attrReview] = 1
	}
	err = t.table.Write(ctx,
		store.Write{Kind: store.Put, Key: findingKey(runID, f), Item: encodeFinding(f), If: store.Absent()},
		store.Write{Kind: store.Update, Key: auditKey(runID), Add: add, If: store.Exists()},
	)
	return err == nil, ignoreCondition(err)
}

// SettleFinding writes how a finding that is open ended, and counts that: once.
func (t *Table) SettleFinding(ctx context.Context, runID string, f audit.Finding) error {
	set, add := store.Item{}, map[string]int64{attrRepaired: 1}
	fields(set).str("repair", string(f.Repair))
	if f.NeedsReview {
		set, add = store.Item{"needs_review": true}, map[string]int64{attrReview: 1}
	}
	open := store.All(store.Exists(), store.HasNo("repair"), store.HasNo("needs_review"))
	return ignoreCondition(t.table.Write(ctx,
		store.Write{Kind: store.Update, Key: findingKey(runID, f), Set: set, If: open},
		store.Write{Kind: store.Update, Key: auditKey(runID), Add: add, If: store.Exists()},
	))
}

// Settled reports, read consistently, whether a finding is there and has ended.
func (t *Table) Settled(ctx context.Context, runID string, f audit.Finding) (bool, error) {
	item, err := t.table.Get(ctx, findingKey(runID, f))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read finding: %w", err)
	}
	known := decodeFinding(item)
	return known.NeedsReview || known.Repair != audit.RepairNone, nil
}

// Findings lists a run's findings, a page at a time, in no particular order.
func (t *Table) Findings(ctx context.Context, runID, cursor string, limit int) ([]audit.Finding, string, error) {
	page, err := t.table.Query(ctx, store.Query{PK: pkAudit + runID, SKPrefix: skFinding, Limit: min(limit, maxPage), Cursor: cursor})
	if err != nil {
		return nil, "", fmt.Errorf("list findings: %w", err)
	}
	findings := make([]audit.Finding, 0, len(page.Entries))
	for _, e := range page.Entries {
		findings = append(findings, decodeFinding(e.Item))
	}
	return findings, page.Cursor, nil
}

// NextMerchant is the merchant that follows in the order of ids, "" after the last.
func (t *Table) NextMerchant(ctx context.Context, after string) (string, error) {
	q := store.Query{PK: pkMerchants, Limit: 1}
	if after != "" {
		q.Cursor = q.CursorAfter(store.Position{Key: merchantListKey(after)})
	}
	page, err := t.table.Query(ctx, q)
	if err != nil || len(page.Entries) == 0 {
		return "", err
	}
	return page.Entries[0].Key.SK, nil
}

// Happened reads by name what a merchant's feed tells of a period, oldest first. The
// feed is a list of pointers; nothing else is read.
func (t *Table) Happened(ctx context.Context, merchantID string, w audit.Window) ([]audit.Happening, string, error) {
	at, inner := month(w.From), ""
	if w.Cursor != "" {
		var err error
		if at, inner, err = parseFeedPosition(w.Cursor); err != nil {
			return nil, "", err
		}
	}
	q := store.Query{PK: feedPK(merchantID, at), Limit: min(w.Limit, maxPage), Cursor: inner}
	if w.Cursor == "" {
		q.Cursor = q.CursorAfter(store.Position{Key: store.Key{PK: q.PK, SK: fmt.Sprintf("%013d", w.From.UnixMilli())}})
	}
	page, err := t.table.Query(ctx, q)
	if err != nil {
		return nil, "", err
	}
	var all []audit.Happening
	for _, e := range page.Entries {
		if stamp, _, _ := strings.Cut(e.Key.SK, "#"); beyond(stamp, w.To) {
			return all, "", nil
		}
		all = append(all, audit.Happening{EventID: reader(e.Item).str("event_id"), Type: reader(e.Item).str("type")})
	}
	next := at.AddDate(0, 1, 0)
	switch {
	case page.Cursor != "":
		return all, feedPosition(at, page.Cursor), nil
	case next.After(w.To):
		return all, "", nil
	}
	return all, feedPosition(next, ""), nil
}

var _ audit.Store = (*Table)(nil)
