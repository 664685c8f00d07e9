package payment_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/payment"
)

func TestNewPaymentIsVersionOne(t *testing.T) {
	p, r := payment.New(terms(payment.CaptureManual), start)
	if p.Version != 1 || p.Status != payment.StatusCreated || p.Create.State != payment.OperationNone {
		t.Errorf("got version %d, %s, create %q; want 1, created, nothing sent", p.Version, p.Status, p.Create.State)
	}
	if r.Version != 1 || r.Type != payment.EventCreated || !r.At.Equal(start) || r.Data.Status != payment.StatusCreated {
		t.Errorf("got row %+v, want version 1, created at the start", r)
	}
	if p.Amount != yen || p.CaptureMethod != payment.CaptureManual || !p.ExpiresAt.Equal(expiry) || !p.HoldsReference {
		t.Errorf("got %+v, want the terms", p)
	}
}

func TestNewSentPaymentHasItsFirstSendingInVersionOne(t *testing.T) {
	p, r := payment.NewSent(terms(payment.CaptureAutomatic), start)
	want := payment.Operation{
		State: payment.OperationSent, Key: string(paymentID), FirstSentAt: start, LastSentAt: start, Sends: 1, Attempt: 1,
	}
	if p.Version != 1 || p.Status != payment.StatusProcessing || p.Create != want {
		t.Errorf("got version %d, %s, create %+v; want 1, processing, %+v", p.Version, p.Status, p.Create, want)
	}
	if r.Version != 1 || r.Type != payment.EventCreated || r.Data.Status != payment.StatusProcessing || r.Data.Operation != payment.OperationCreate {
		t.Errorf("got row %+v, want version 1, created and processing", r)
	}
}

func TestOnlyAPaymentWithAReferenceHoldsIt(t *testing.T) {
	anonymous := terms(payment.CaptureAutomatic)
	anonymous.Reference = ""
	if p, _ := payment.NewSent(anonymous, start); p.HoldsReference {
		t.Error("got a held reference, want none without one")
	}
	for status, p := range inStatus(t) {
		dead := status == payment.StatusFailed || status == payment.StatusCanceled || status == payment.StatusRefunded
		if p.HoldsReference == dead {
			t.Errorf("%s: got holds_reference %v, want %v", status, p.HoldsReference, !dead)
		}
	}
}

// The status says which helper applies; both are total.
func TestStatusesAreOpenOrTerminal(t *testing.T) {
	tests := map[payment.Status]struct{ terminal, dead bool }{
		payment.StatusCreated:        {},
		payment.StatusProcessing:     {},
		payment.StatusRequiresAction: {},
		payment.StatusAuthorized:     {},
		payment.StatusCaptured:       {terminal: true},
		payment.StatusFailed:         {terminal: true, dead: true},
		payment.StatusCanceled:       {terminal: true, dead: true},
		payment.StatusRefunded:       {terminal: true},
	}
	for _, s := range payment.Statuses() {
		want, decided := tests[s]
		if !decided || s.Terminal() != want.terminal || s.Open() == want.terminal || s.Dead() != want.dead {
			t.Errorf("%s: got terminal %v, open %v, dead %v; want %+v", s, s.Terminal(), s.Open(), s.Dead(), want)
		}
	}
}

// Every change is one version, and its row tells of the payment after it.
func TestEachChangeIsOneVersionWithItsRow(t *testing.T) {
	steps := []payment.Event{
		at(time.Second, fact(payment.EventActionRequired)),
		at(2*time.Second, fact(payment.EventAuthorized)),
		at(3*time.Second, capture(4000)),
		at(4*time.Second, missed(payment.EventUnanswered, payment.OperationCapture, 1)),
		at(5*time.Second, capturedOnly(4000)),
		at(6*time.Second, ask(ours1, 4000)),
		at(7*time.Second, dispute(payment.EventDisputeOpened, "dp_1", "")),
		at(8*time.Second, refund(payment.EventRefundSucceeded, ours1, "rf_1", 4000)),
	}
	p := manual()
	for i, e := range steps {
		e.Notification = "evt_7"
		next, r, changed, err := p.Apply(e)
		if err != nil || !changed {
			t.Fatalf("%s: changed %v, %v", e.Type, changed, err)
		}
		if next.Version != int64(i+2) || !next.UpdatedAt.Equal(e.At) || next.Tries != 0 {
			t.Errorf("%s: got version %d at %s, tries %d; want %d at %s, 0", e.Type, next.Version, next.UpdatedAt, next.Tries, i+2, e.At)
		}
		d := r.Data
		if r.Version != next.Version || !r.At.Equal(e.At) || r.Type != e.Type || d.Webhook != "evt_7" {
			t.Errorf("%s: got row %d %s at %s for %q, want the version, type, time and webhook", e.Type, r.Version, r.Type, r.At, d.Webhook)
		}
		if d.Status != next.Status || d.AmountCaptured != next.AmountCaptured || d.AmountRefunded != next.AmountRefunded() ||
			d.InDoubt != next.InDoubt() || d.Disputed != next.Disputed() || d.Amount != whole || d.Currency != "JPY" {
			t.Errorf("%s: got row data %+v, want the payment after it", e.Type, d)
		}
		p = next
		p.Tries = 3 // as after looks that brought nothing
	}
	if p.Status != payment.StatusRefunded {
		t.Errorf("got %s, want refunded", p.Status)
	}
}

func TestRowOfARefundNamesIt(t *testing.T) {
	captured := inStatus(t)[payment.StatusCaptured]
	asked := after(t, captured, ask(ours1, 2000))
	tests := []struct {
		name string
		from payment.Payment
		e    payment.Event
		want payment.RowRefund
	}{
		{
			"asked", captured, ask(ours1, 2000),
			payment.RowRefund{ID: ours1, Status: payment.RefundPending, Amount: 2000, Reason: "returned"},
		},
		{
			"ours by id", asked, refund(payment.EventRefundSucceeded, ours1, "rf_1", 2000),
			payment.RowRefund{ID: ours1, Status: payment.RefundSucceeded, Amount: 2000, Reason: "returned"},
		},
		{
			"ours by the PSP's id", after(t, asked, refund(payment.EventRefundPending, ours1, "rf_1", 2000)),
			refund(payment.EventRefundFailed, "", "rf_1", 2000),
			payment.RowRefund{ID: ours1, Status: payment.RefundFailed, Amount: 2000, Reason: "returned"},
		},
		{
			"made outside", captured, refund(payment.EventRefundSucceeded, "", "rf_9", 700),
			payment.RowRefund{ID: payment.OutsideRefundID("simulator", "rf_9"), Status: payment.RefundSucceeded, Amount: 700, Reason: payment.ReasonOutside},
		},
		{
			"late money", canceledBySilence(t), fact(payment.EventCaptured),
			payment.RowRefund{ID: payment.LateRefundID(paymentID), Status: payment.RefundPending, Amount: whole, Reason: payment.ReasonLateCapture},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := row(t, tt.from, tt.e).Data.Refund; got == nil || *got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	if got := row(t, manual(), fact(payment.EventAuthorized)).Data; got.Refund != nil || got.Dispute != nil {
		t.Errorf("got refund %v, dispute %v; want neither in a row about the charge", got.Refund, got.Dispute)
	}
}

func TestRowOfADisputeNamesIt(t *testing.T) {
	disputed := after(t, inStatus(t)[payment.StatusCaptured], dispute(payment.EventDisputeOpened, "dp_1", ""))
	got := row(t, disputed, dispute(payment.EventDisputeClosed, "dp_1", "won")).Data.Dispute
	want := payment.RowDispute{ID: "dp_1", Status: payment.DisputeClosed, Amount: whole, Result: "won"}
	if got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Some rows say more than the event: the merchant reads them in the journal.
func TestRowTypesThatApplyChooses(t *testing.T) {
	expired := after(t, processing(), cancel(payment.CancelByExpiry))
	tests := []struct {
		name string
		from payment.Payment
		e    payment.Event
		want payment.EventType
	}{
		{"cancel before anything was sent", created(), cancel(payment.CancelByMerchant), payment.EventVoided},
		{"cancel of a charge", processing(), cancel(payment.CancelByMerchant), payment.EventCancelRequested},
		{"the PSP has no charge", expired, intent(payment.EventAbsent), payment.EventVoided},
		{"late money", canceledBySilence(t), fact(payment.EventCaptured), payment.EventLateCaptured},
		{"late hold", canceledBySilence(t), fact(payment.EventAuthorized), payment.EventLateAuthorized},
		{"late decline", canceledBySilence(t), fact(payment.EventDeclined), payment.EventVoided},
		{"captured", processing(), fact(payment.EventCaptured), payment.EventCaptured},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := row(t, tt.from, tt.e); got.Type != tt.want {
				t.Errorf("got %s, want %s", got.Type, tt.want)
			}
		})
	}
}

func TestRepeatsAreOldNews(t *testing.T) {
	all := inStatus(t)
	late := after(t, canceledBySilence(t), fact(payment.EventCaptured))
	disputed := after(t, all[payment.StatusCaptured], dispute(payment.EventDisputeOpened, "dp_1", ""))
	unanswered := after(t, processing(), missed(payment.EventUnanswered, payment.OperationCreate, 1))
	repeats := []struct {
		name string
		p    payment.Payment
		e    payment.Event
	}{
		{"pending", after(t, processing(), fact(payment.EventPending)), fact(payment.EventPending)},
		{"requires action", all[payment.StatusRequiresAction], fact(payment.EventActionRequired)},
		{"authorized", all[payment.StatusAuthorized], fact(payment.EventAuthorized)},
		{"captured", all[payment.StatusCaptured], fact(payment.EventCaptured)},
		{"captured after it went back", all[payment.StatusRefunded], fact(payment.EventCaptured)},
		{"declined", all[payment.StatusFailed], fact(payment.EventDeclined)},
		{"canceled", after(t, canceledBySilence(t), fact(payment.EventVoided)), fact(payment.EventVoided)},
		{"absent", canceledBySilence(t), intent(payment.EventAbsent)},
		{"late hold", after(t, canceledBySilence(t), fact(payment.EventAuthorized)), fact(payment.EventAuthorized)},
		{"late money", late, fact(payment.EventCaptured)},
		{"hold of late money", late, fact(payment.EventAuthorized)},
		{"hold of a declined charge", all[payment.StatusFailed], fact(payment.EventAuthorized)},
		{"unanswered", unanswered, missed(payment.EventUnanswered, payment.OperationCreate, 1)},
		{"mismatched", after(t, processing(), intent(payment.EventMismatched)), intent(payment.EventMismatched)},
		{"dispute opened", disputed, dispute(payment.EventDisputeOpened, "dp_1", "")},
		{
			"S9: dispute opened again after its end", after(t, disputed, dispute(payment.EventDisputeClosed, "dp_1", "lost")),
			dispute(payment.EventDisputeOpened, "dp_1", ""),
		},
		{
			"dispute closed", after(t, disputed, dispute(payment.EventDisputeClosed, "dp_1", "lost")),
			dispute(payment.EventDisputeClosed, "dp_1", "won"),
		},
		{"decline after the capture", all[payment.StatusCaptured], fact(payment.EventDeclined)},
		{"cancel after the capture", all[payment.StatusCaptured], fact(payment.EventVoided)},
	}
	for _, r := range repeats {
		t.Run(r.name, func(t *testing.T) { oldNews(t, r.p, r.e) })
	}
}

func TestFailureSaysWhy(t *testing.T) {
	held := inStatus(t)[payment.StatusAuthorized]
	expired := &payment.Failure{Code: payment.FailureExpired, Retryable: true}
	tests := []struct {
		name   string
		from   payment.Payment
		events []payment.Event
		want   *payment.Failure
	}{
		{
			"declined", processing(),
			[]payment.Event{fact(payment.EventDeclined)},
			&payment.Failure{Code: payment.FailureDeclined, DeclineCode: "insufficient_funds", Retryable: true},
		},
		{"given up before it was sent", created(), []payment.Event{cancel(payment.CancelByExpiry)}, expired},
		{
			"given up, the PSP knew of none", processing(),
			[]payment.Event{cancel(payment.CancelByExpiry), intent(payment.EventAbsent)},
			expired,
		},
		{"given up and voided", processing(), []payment.Event{cancel(payment.CancelByExpiry), fact(payment.EventVoided)}, expired},
		{"canceled by the merchant", processing(), []payment.Event{cancel(payment.CancelByMerchant), fact(payment.EventVoided)}, nil},
		{"the first cause stays", processing(), []payment.Event{
			cancel(payment.CancelByMerchant), cancel(payment.CancelByExpiry), fact(payment.EventVoided),
		}, nil},
		{
			"the hold lapsed", held,
			[]payment.Event{fact(payment.EventVoided)},
			&payment.Failure{Code: payment.FailureAuthorization, Retryable: true},
		},
		{
			"the hold was voided for the merchant", held,
			[]payment.Event{cancel(payment.CancelByMerchant), fact(payment.EventVoided)},
			nil,
		},
		{
			"declined, and a void confirmed later", processing(),
			[]payment.Event{fact(payment.EventDeclined)},
			&payment.Failure{Code: payment.FailureDeclined, DeclineCode: "insufficient_funds", Retryable: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := after(t, tt.from, tt.events...).Failure; !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// What the PSP has told us of once is remembered, and a hold is a hold.
func TestFactsAreRemembered(t *testing.T) {
	p := after(t, processing(), fact(payment.EventPending))
	if p.PSPReference != chargeRef || p.Create.State != payment.OperationAnswered {
		t.Errorf("got reference %q, create %q; want %q, answered", p.PSPReference, p.Create.State, chargeRef)
	}
	// What was asked is answered, and what was never asked is not.
	held := after(t, manual(), fact(payment.EventAuthorized))
	if p := after(t, held, capture(whole), fact(payment.EventCaptured)); p.Capture.State != payment.OperationAnswered || p.Void != (payment.Operation{}) {
		t.Errorf("got capture %q, void %+v; want answered, and none", p.Capture.State, p.Void)
	}
	if p := after(t, held, cancel(payment.CancelByMerchant), intent(payment.EventVoidSent), fact(payment.EventVoided)); p.Void.State != payment.OperationAnswered || p.Capture != (payment.Operation{}) {
		t.Errorf("got void %q, capture %+v; want answered, and none", p.Void.State, p.Capture)
	}
	oldNews(t, canceledBySilence(t), missed(payment.EventUnanswered, payment.OperationCreate, 1))
	void := intent(payment.EventVoidSent)
	void.PSPReference = chargeRef
	if got := after(t, canceledBySilence(t), void).PSPReference; got != chargeRef {
		t.Errorf("got reference %q from a look-up before a void, want %q", got, chargeRef)
	}
	if p := after(t, processing(), fact(payment.EventDeclined)); !p.Buried {
		t.Error("got a declined charge that may still live, want it buried")
	}
	held = after(t, canceledBySilence(t), fact(payment.EventAuthorized))
	if !held.LateHold || held.Status != payment.StatusCanceled {
		t.Errorf("got hold %v in %s, want a late hold of a canceled payment", held.LateHold, held.Status)
	}
	voided := after(t, held, fact(payment.EventVoided))
	if voided.LateHold || !voided.Buried {
		t.Errorf("got hold %v, buried %v; want a void to end the hold", voided.LateHold, voided.Buried)
	}
	lapsed := after(t, held, fact(payment.EventDeclined))
	if lapsed.LateHold || !lapsed.Buried || lapsed.Status != payment.StatusCanceled || lapsed.Failure.Code != payment.FailureExpired {
		t.Errorf("got hold %v, buried %v, %s, %+v; want a decline to end the hold and nothing else", lapsed.LateHold, lapsed.Buried, lapsed.Status, lapsed.Failure)
	}
	if p := after(t, held, fact(payment.EventCaptured)); p.LateHold {
		t.Error("got a late hold beside late money, want none")
	}
}

func TestInDoubtMeansNoUsableAnswer(t *testing.T) {
	held := after(t, inStatus(t)[payment.StatusAuthorized], capture(whole))
	canceling := after(t, processing(), fact(payment.EventPending), cancel(payment.CancelByMerchant), intent(payment.EventVoidSent))
	tests := []struct {
		name string
		from payment.Payment
		e    payment.Event
		want bool
	}{
		{"no answer to the charge", processing(), missed(payment.EventUnanswered, payment.OperationCreate, 1), true},
		{"throttled", processing(), missed(payment.EventNotRun, payment.OperationCreate, 1), false},
		{"pending at the PSP", processing(), fact(payment.EventPending), false},
		{"no answer to the capture", held, missed(payment.EventUnanswered, payment.OperationCapture, 1), true},
		{"the capture is refused", held, missed(payment.EventCaptureRefused, payment.OperationCapture, 1), false},
		{"no answer to the void", canceling, missed(payment.EventUnanswered, payment.OperationVoid, 1), true},
		{"other money", processing(), intent(payment.EventMismatched), true},
		{"answered after a doubt", after(t, processing(), missed(payment.EventUnanswered, payment.OperationCreate, 1)), fact(payment.EventPending), false},
		{"the right money after other money", after(t, processing(), intent(payment.EventMismatched)), fact(payment.EventPending), false},
		{"ended in doubt about the void", after(t, canceling, missed(payment.EventUnanswered, payment.OperationVoid, 1)), fact(payment.EventCaptured), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := after(t, tt.from, tt.e)
			if p.InDoubt() != tt.want || p.View().InDoubt != tt.want {
				t.Errorf("got in_doubt %v, want %v", p.InDoubt(), tt.want)
			}
		})
	}
}
