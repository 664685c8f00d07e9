package order_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/order"
)

var _ lambda.Handler = order.Handler{}

func TestTheHandlerAnswersInDataAndFailsByName(t *testing.T) {
	const purchase = `"merchant_id":"alpha","payment_id":"pay_1","reference":null,"amount":2000,"currency":"JPY","customer":{"email":"a@example.com"}`
	const tee, reject = `,"lines":[{"sku":"tee","quantity":2,"unit_amount":1000}]`, `,"lines":[{"sku":"reject-tee","quantity":2,"unit_amount":1000}]`
	steps := []struct{ payload, want, failure string }{
		{
			payload: `{"command":"create","checkout_id":"chk_1",` + purchase + tee + `}`,
			want:    `{"outcome":"created","checkout_id":"chk_1","order_id":"ord_1","code":null}`,
		},
		{
			payload: `{"command":"create","checkout_id":"chk_2",` + purchase + reject + `}`,
			want:    `{"outcome":"rejected","checkout_id":"chk_2","order_id":null,"code":"order_rejected"}`,
		},
		{
			payload: `{"command":"cancel","checkout_id":"chk_2",` + purchase + reject + `}`,
			want:    `{"outcome":"canceled","checkout_id":"chk_2","order_id":null,"code":null}`,
		},
		{
			payload: `{"command":"cancel","merchant_id":"alpha","checkout_id":"chk_3"}`,
			want:    `{"outcome":"canceled","checkout_id":"chk_3","order_id":null,"code":null}`,
		},
		{
			payload: `{"command":"create","checkout_id":"chk_3",` + purchase + tee + `}`,
			want:    `{"outcome":"canceled","checkout_id":"chk_3","order_id":null,"code":null}`,
		},
		{payload: `{"command":"create","checkout_id":"chk_1",` + strings.Replace(purchase, "pay_1", "pay_2", 1) + tee + `}`, failure: "InvalidCommandError"},
		{payload: `{"command":"create","checkout_id":"chk_4",` + purchase + `}`, failure: "InvalidCommandError"},
		{payload: `{"command":"create","checkout_id":"chk_4","note":1,` + purchase + tee + `}`, failure: "InvalidCommandError"},
		{payload: `{"command":"create","checkout_id":"chk_4","amount":1,` + purchase + tee + `}`, failure: "InvalidCommandError"},
		{payload: `{"command":"ship","checkout_id":"chk_1","merchant_id":"alpha"}`, failure: "InvalidCommandError"},
		{payload: `[]`, failure: "InvalidCommandError"},
	}
	p := order.New(newTable(), clock, order.RefuseSKUsFrom("reject-"))
	h := order.NewHandler(p)
	for _, s := range steps {
		for range 2 {
			got, err := h.Invoke(t.Context(), []byte(s.payload))
			if string(got) != s.want || failure(err) != s.failure {
				t.Errorf("%s: got %s %v, want %s %s", s.payload, got, err, s.want, s.failure)
			}
		}
	}
	down := order.NewHandler(order.New(&tap{Table: newTable(), lost: func(int) fault { return unheard }}, clock, nil))
	for _, s := range steps[:4] {
		if _, err := down.Invoke(t.Context(), []byte(s.payload)); failure(err) != "UnavailableError" {
			t.Errorf("%s: got %v, want UnavailableError", s.payload, err)
		}
	}
}

// failure is the name that Step Functions sees: the outermost Go type's.
func failure(err error) string {
	if err == nil {
		return ""
	}
	return reflect.TypeOf(err).Elem().Name()
}
