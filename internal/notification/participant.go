package notification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/store"
)

var (
	// ErrInvalid says that a notification is malformed, or that its checkout was
	// told something else before. Nothing was done.
	ErrInvalid = errors.New("notification: invalid")
	// errOvertaken says that another attempt began meanwhile; a repeat finds out
	// how it ended.
	errOvertaken = errors.New("notification: another attempt is under way")
)

const (
	// deliveryTimeout of one attempt: well within the time of the function that
	// makes it, and shorter than minPause.
	deliveryTimeout = 5 * time.Second

	// retention of what was delivered. The address is personal data, and no
	// repeat of a Send comes after a year.
	retention = 365 * 24 * time.Hour
)

// Options of a Participant.
type Options struct {
	Table  store.Table // its own
	Sender Sender
	Now    func() time.Time
	// Jitter returns a random number of 0 up to but not including n, n at least 1.
	Jitter func(n int64) int64
	Log    *slog.Logger // what a sweep could not deliver
}

// Participant tells buyers. All methods are safe for concurrent use.
type Participant struct{ o Options }

// New returns the participant.
func New(o Options) *Participant { return &Participant{o: o} }

// Send tells a buyer once: it stores the notification and delivers it, or drives
// on one that is stored and not delivered. It returns its id, and ErrInvalid for a
// malformed notification or one that tells the checkout something else than
// before. On any other error the notification may be stored, and Sweep or a repeat
// delivers it. Safe to repeat.
func (p *Participant) Send(ctx context.Context, n Notification) (notificationID string, err error) {
	if err := n.validate(); err != nil {
		return "", err
	}
	now := p.o.Now().UTC().Truncate(time.Millisecond)
	n.ID, n.Status, n.CreatedAt = id(n.MerchantID, n.CheckoutID, n.Kind), Pending, now
	r := row{Notification: n, attempts: 1, dueAt: p.nextAttempt(1)}
	err = p.o.Table.Write(ctx, store.Write{Kind: store.Put, Key: r.key(), Item: r.item(), If: ifUntouched()})
	if lost, ok := errors.AsType[*store.ConditionError](err); ok {
		old, _ := lost.At(0)
		err = p.driveOn(ctx, n, old)
	} else if err == nil {
		err = p.deliver(ctx, r)
	}
	if err != nil {
		return "", fmt.Errorf("notification: send %s: %w", n.ID, err)
	}
	return n.ID, nil
}

// driveOn repeats a Send whose row is there.
func (p *Participant) driveOn(ctx context.Context, n Notification, old store.Item) error {
	r := decode(old)
	if !r.sameAs(n) {
		return fmt.Errorf("%w: the checkout was told something else before", ErrInvalid)
	}
	if r.Status == Sent {
		return nil
	}
	if err := p.begin(ctx, r); err != nil {
		return err
	}
	return p.deliver(ctx, r)
}

// begin counts an attempt on the row and says when to look again if it comes to
// nothing. It returns errOvertaken when the row is no longer as read.
func (p *Participant) begin(ctx context.Context, r row) error {
	return p.change(ctx, store.Write{
		Kind: store.Update, Key: r.key(), If: ifAttempt(r.attempts),
		Set: store.Item{
			attrStatus:         string(Pending),
			store.AttrDueShard: dueShardOf(r.ID),
			store.AttrDueAt:    p.nextAttempt(r.attempts + 1),
		},
		Add: map[string]int64{attrAttempts: 1},
	})
}

// deliver makes the attempt that was counted and keeps its success. Its failure
// needs no write: the row already says when to look again.
func (p *Participant) deliver(ctx context.Context, r row) error {
	sending, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	if err := p.o.Sender.Deliver(sending, r.Notification); err != nil {
		return &deliveryError{err: err, to: r.To}
	}
	now := p.o.Now()
	err := p.change(ctx, store.Write{
		Kind: store.Update, Key: r.key(), If: ifUndelivered(),
		Set: store.Item{
			attrStatus:          string(Sent),
			attrDeliveredAt:     now.UnixMilli(),
			store.AttrExpiresAt: now.Add(retention).Unix(),
		},
		Remove: []string{store.AttrDueShard, store.AttrDueAt},
	})
	if errors.Is(err, errOvertaken) {
		return nil // a simultaneous attempt kept its success first
	}
	return err
}

// change writes, and returns errOvertaken when the condition did not hold.
func (p *Participant) change(ctx context.Context, w store.Write) error {
	err := p.o.Table.Write(ctx, w)
	if _, ok := errors.AsType[*store.ConditionError](err); ok {
		return errOvertaken
	}
	return err
}

// ListByCheckout returns the merchant's notifications of one checkout, at most one
// of each kind, read consistently. Of an unknown checkout, and of another
// merchant's, there are none.
func (p *Participant) ListByCheckout(ctx context.Context, merchant, checkout string) ([]Notification, error) {
	if !command.ValidID(merchant) || !command.ValidID(checkout) {
		return nil, nil
	}
	page, err := p.o.Table.Query(ctx, store.Query{
		PK: checkoutPartition(merchant, checkout), SKPrefix: keyPrefix, Limit: maxKinds,
	})
	if err != nil {
		return nil, fmt.Errorf("notification: list of %s: %w", checkout, err)
	}
	var list []Notification
	for _, e := range page.Entries {
		list = append(list, decode(e.Item).Notification)
	}
	return list, nil
}

// maxKinds of one checkout: more than there will be, and all fit on one page.
const maxKinds = 100
