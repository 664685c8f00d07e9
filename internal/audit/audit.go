package audit

import (
	"errors"
	"time"

	"github.com/kessai/kessai/internal/payment"
)

// Kind is what a finding is.
type Kind string

// Kinds of findings.
const (
	MissingAtPSP    Kind = "missing_at_psp"   // captured here, and the PSP has no such charge
	MissingHere     Kind = "missing_here"     // the PSP has a charge that no payment here owns
	AmountDiffers   Kind = "amount_differs"   // amount or currency
	StatusDiffers   Kind = "status_differs"   // of the charge and the payment
	OrderMissing    Kind = "order_missing"    // money was taken for a checkout that has no order
	StockLeaked     Kind = "stock_leaked"     // pieces are held or sold for a checkout that should not, or not sold for one that should
	RefundUnmatched Kind = "refund_unmatched" // a refund is on one side only, or differs
)

// Kinds lists every Kind once.
func Kinds() []Kind {
	return []Kind{MissingAtPSP, MissingHere, AmountDiffers, StatusDiffers, OrderMissing, StockLeaked, RefundUnmatched}
}

// Repair is how a finding was put right.
type Repair string

// Repairs.
const (
	RepairNone Repair = ""
	Recorded   Repair = "recorded"
	DrivenOn   Repair = "driven_on"
	Resumed    Repair = "resumed"
)

// Finding is one difference.
type Finding struct {
	Kind       Kind
	PaymentID  payment.ID // "" when the PSP names none of ours
	CheckoutID string
	Reference  string // the PSP's id of the charge
	Refund     string // ours or the PSP's id of the refund
	Webhook    string // the id of the notification that was compared, "" otherwise
	There      string // what the PSP, its notification, or the shop says
	Here       string // what is recorded here
	Line       int    // of the settlement file, 0 otherwise
	Repair     Repair
	// NeedsReview says that nothing could put it right. A finding with neither was
	// only looked for: the run was not to repair.
	NeedsReview bool
	At          time.Time
}

// Status is where a run stands.
type Status string

// Statuses of a run.
const (
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed" // it stopped too often at the same place
)

// Source is where a run has the PSP's side from.
type Source string

// Sources.
const (
	SourceList Source = "list"
	SourceFile Source = "file"
)

// Phase is which part a run is in.
type Phase string

// Phases.
const (
	PhaseThere Phase = "there" // reading the PSP's side
	PhaseLog   Phase = "log"   // reading the webhook log
	PhaseHere  Phase = "here"  // reading ours
)

// Run is one reconciliation.
type Run struct {
	ID       string
	PSP      string
	Source   Source
	From, To time.Time // of our side, both zero for a file without a period; a list begins at From
	Repair   bool
	Status   Status
	Version  int64 // counts commits; a write needs the version it has seen

	Phase    Phase
	Cursor   string // within the list, the file, the webhook log, or the feed of Merchant
	Merchant string // whose feed is read, "" before the first
	Pages    int    // of the list, read so far
	Stops    int    // in a row, without progress

	Charges  int64 // of the PSP's side, compared
	Webhooks int64 // notifications, compared
	Payments int64 // of ours, looked at
	Counts   map[Kind]int64
	Repaired int64
	Review   int64
	BadRows  []BadRow // the first of them
	BadCount int64
	// PassedOver counts rows of the file that are about no payment, such as fees, or
	// that nothing here is compared with.
	PassedOver int64

	CreatedAt time.Time
	UpdatedAt time.Time
}

// IDPrefix begins a run's id; a ULID follows.
const IDPrefix = "rec_"

// Errors that callers branch on.
var (
	// ErrNotFound says that there is no such run.
	ErrNotFound = errors.New("audit: no such run")
	// ErrUnknownPSP says that the PSP's charges cannot be listed here.
	ErrUnknownPSP = errors.New("audit: psp has no list")
	// ErrConflict says that another worker was faster.
	ErrConflict = errors.New("audit: run has moved on")
)
