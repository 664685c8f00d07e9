package notification_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/notification"
)

func TestTheHandlerAnswersInDataAndFailsByName(t *testing.T) {
	const send = `{"command":"send","merchant_id":"alpha","checkout_id":"chk_1","kind":"order_confirmation","order_id":"ord_1","reference":null,"amount":5000,"currency":"JPY"`
	steps := []struct {
		payload, want, failure string
		down                   bool
	}{
		{payload: send + `,"to":"a@example.com"}`, failure: "UnavailableError", down: true},
		{
			payload: send + `,"to":"a@example.com"}`,
			want:    `{"outcome":"sent","checkout_id":"chk_1","notification_id":"NTF","swept":null}`,
		},
		{payload: send + `,"to":null}`, want: `{"outcome":"skipped","checkout_id":"chk_1","notification_id":null,"swept":null}`},
		{
			payload: `{"command":"sweep"}`,
			want:    `{"outcome":"swept","checkout_id":"","notification_id":null,"swept":{"delivered":0,"postponed":0,"given_up":0}}`,
		},
		{payload: send + `,"to":"b@example.com"}`, failure: "InvalidCommandError"},
		{payload: send + `,"to":"a@example.com","cc":"b@example.com"}`, failure: "InvalidCommandError"},
		{payload: send + `,"to":["a@example.com"]}`, failure: "InvalidCommandError"},
		{payload: `{"command":"unsend"}`, failure: "InvalidCommandError"},
	}
	s := open(t)
	h := notification.NewHandler(s.Participant)
	for _, step := range steps {
		s.fail = nil
		if step.down {
			s.fail = errors.New("down")
		}
		got, err := h.Invoke(t.Context(), []byte(step.payload))
		want := step.want
		if len(s.sent) > 0 {
			want = strings.Replace(want, "NTF", s.sent[0], 1)
		}
		name := ""
		if err != nil {
			name = reflect.TypeOf(err).Elem().Name()
			if strings.Contains(err.Error(), "@") {
				t.Errorf("%s: got %v, want no address in it", step.payload, err)
			}
		}
		if string(got) != want || name != step.failure {
			t.Errorf("%s: got %s %v, want %s %s", step.payload, got, err, want, step.failure)
		}
	}
}
