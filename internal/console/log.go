package console

import (
	"strings"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/webhook"
)

// subject is what pages of a section are about.
type subject struct {
	name   string // in a log line
	action string // what may be done there, "" for nothing
	valid  func(id string) bool
}

// subjects are the sections whose pages are about one thing each.
var subjects = map[string]subject{
	"payments":        {"payment_id", "", func(id string) bool { return payment.ID(id).WellFormed() }},
	"checkouts":       {"checkout_id", "resume", checkout.WellFormed},
	"webhooks":        {"webhook_id", "replay", func(id string) bool { _, _, ok := webhook.ParseID(id); return ok }},
	"reconciliations": {"reconciliation_id", "", validRun},
}

// validRun reports whether id can be a reconciliation's.
func validRun(id string) bool {
	ulid, ok := strings.CutPrefix(id, audit.IDPrefix)
	return ok && payment.ID(payment.IDPrefix+ulid).WellFormed()
}

// named is the request in a log line: its route and what it is about. Whoever has no
// key may have written anything into a path: then it is not repeated.
func (r request) named() []any {
	s, about := subjects[r.section]
	route := "none"
	switch {
	case r.section == "" && r.id == "":
		route = Path
	case about && r.id == "":
		route = Path + "/" + r.section
	case about && r.action == "":
		route = Path + "/" + r.section + "/{id}"
	case about && r.action == s.action:
		route = Path + "/" + r.section + "/{id}/" + s.action
	case r.id == "" && (r.section == "find" || r.section == "login" || r.section == "logout"):
		route = Path + "/" + r.section
	}
	attrs := []any{"method", r.method, "route", route}
	if about && r.session.key != "" && s.valid(r.id) {
		attrs = append(attrs, s.name, r.id)
	}
	return attrs
}
