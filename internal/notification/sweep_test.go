package notification_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/notification"
	"github.com/kessai/kessai/internal/store"
)

// The function died after the row, and nobody repeats: the sweep delivers.
func TestTheSweepDeliversWhatWasLeft(t *testing.T) {
	s := open(t)
	s.fail = errors.New("down")
	if _, err := s.Send(t.Context(), confirmed()); err == nil {
		t.Fatal("got a success, want the Sender's error")
	}
	s.fail = nil
	s.wantSwept(t, notification.Swept{}) // an attempt may still be on its way
	s.now = s.now.Add(time.Minute)
	s.wantSwept(t, notification.Swept{Delivered: 1})
	s.now = s.now.Add(24 * time.Hour)
	s.wantSwept(t, notification.Swept{})
	s.wantSent(t, 2)
	s.wantStatus(t, notification.Sent)
}

func (s *shop) wantSwept(t *testing.T, want notification.Swept) {
	t.Helper()
	if got, err := s.Sweep(t.Context()); err != nil || got != want {
		t.Errorf("got %+v %v, want %+v", got, err, want)
	}
}

// Each failure moves the row further away, so it is never at the head of the
// line, and in the end a person is asked.
func TestASweepBacksOffAndGivesUp(t *testing.T) {
	s := open(t)
	s.fail = errors.New("550 a@example.com unknown")
	if _, err := s.Send(t.Context(), confirmed()); err == nil {
		t.Fatal("got a success, want the Sender's error")
	}
	begun := s.now
	for attempts := 1; attempts < 24; {
		s.now = s.now.Add(10 * time.Minute)
		swept, err := s.Sweep(t.Context())
		if err != nil || swept.Delivered != 0 || swept.GivenUp != 0 {
			t.Fatalf("got %+v %v, want none delivered or given up", swept, err)
		}
		attempts += swept.Postponed
		s.wantSent(t, attempts)
		s.wantStatus(t, notification.Pending)
	}
	if took := s.now.Sub(begun); took < 24*time.Hour || took > 4*24*time.Hour {
		t.Errorf("got 24 attempts in %s, want them over one to four days", took)
	}
	s.now = s.now.Add(7 * time.Hour)
	s.wantSwept(t, notification.Swept{GivenUp: 1})
	s.wantSwept(t, notification.Swept{})
	s.wantStatus(t, notification.Failed)
	if got := s.log.String(); !strings.Contains(got, "notification given up") || strings.Contains(got, address) {
		t.Errorf("got log %s, want it told without the address", got)
	}
	s.fail = nil
	if _, err := s.Send(t.Context(), confirmed()); err != nil { // a person has looked
		t.Error(err)
	}
	s.wantStatus(t, notification.Sent)
}

func TestOneThatFailsDoesNotHoldUpAnother(t *testing.T) {
	s := open(t)
	s.fail = errors.New("down")
	const all = 300
	for i := range all {
		n := confirmed()
		n.CheckoutID = fmt.Sprintf("chk_%d", i)
		if _, err := s.Send(t.Context(), n); err == nil {
			t.Fatal("got a success, want the Sender's error")
		}
	}
	s.now = s.now.Add(time.Minute)
	seen := map[string]bool{}
	s.sent = nil
	for range 3 { // more than two full sweeps, while everything fails and nothing else is due
		if _, err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range s.sent {
		seen[id] = true
	}
	if len(seen) != all || len(s.sent) != all {
		t.Errorf("got %d attempts of %d notifications, want one of each of %d", len(s.sent), len(seen), all)
	}
}

// left is a shop with one notification that was tried once and is due.
func left(t *testing.T) *shop {
	t.Helper()
	s := open(t)
	s.fail = errors.New("down")
	if _, err := s.Send(t.Context(), confirmed()); err == nil {
		t.Fatal("got a success, want the Sender's error")
	}
	s.fail = nil
	s.now = s.now.Add(time.Minute)
	return s
}

// beforeNextWrite slips f in before the next write of the shop.
func (s *shop) beforeNextWrite(f func()) {
	s.cut = func(int) (bool, bool) {
		s.cut = nil
		f()
		return false, false
	}
}

// Whoever counts an attempt makes it: a second sweep at the same moment does not.
func TestTwoSweepsMakeOneAttempt(t *testing.T) {
	s := left(t)
	s.during = func() { s.wantSwept(t, notification.Swept{}) }
	s.wantSwept(t, notification.Swept{Delivered: 1})
	s.wantSent(t, 2)

	s = left(t)
	s.fail = errors.New("down")
	s.beforeNextWrite(func() { s.wantSwept(t, notification.Swept{Postponed: 1}) })
	s.wantSwept(t, notification.Swept{})
	s.wantSent(t, 2)
}

// The first attempt was slow, and keeps its success just when a sweep begins another.
func TestNoAttemptIsMadeOfWhatWasDelivered(t *testing.T) {
	s := left(t)
	s.beforeNextWrite(func() {
		err := s.table.Write(t.Context(), store.Write{Kind: store.Update, Key: rowKey, Set: store.Item{"status": "sent"}})
		if err != nil {
			t.Error(err)
		}
	})
	s.wantSwept(t, notification.Swept{})
	s.wantSent(t, 1)
	s.wantStatus(t, notification.Sent)
}

// The index is a hint: what it says is read again before anything is done.
func TestASweepDoesNotBelieveTheIndex(t *testing.T) {
	s := left(t)
	s.stale = map[string]store.Page{}
	s.fail = errors.New("down")
	s.wantSwept(t, notification.Swept{Postponed: 1})
	s.wantSwept(t, notification.Swept{}) // not due any more
	s.now = s.now.Add(time.Hour)
	s.fail = nil
	s.wantSwept(t, notification.Swept{Delivered: 1})
	s.now = s.now.Add(time.Hour)
	s.wantSwept(t, notification.Swept{}) // sent
	s.wantSent(t, 3)
	if err := s.table.Write(t.Context(), store.Write{Kind: store.Delete, Key: rowKey}); err != nil {
		t.Error(err)
	}
	s.wantSwept(t, notification.Swept{}) // gone
}

// However the dice fall, a sweep leaves an attempt the time it may take.
func TestASweepWaitsForAnAttemptUnderWay(t *testing.T) {
	s := open(t)
	s.jitter = func(int64) int64 { return 0 }
	s.during = func() {
		s.now = s.now.Add(29 * time.Second)
		s.wantSwept(t, notification.Swept{})
	}
	if _, err := s.Send(t.Context(), confirmed()); err != nil {
		t.Error(err)
	}
	s.wantSent(t, 1)
}
