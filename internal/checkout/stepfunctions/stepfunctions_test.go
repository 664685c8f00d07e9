package stepfunctions_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/stepfunctions"
)

// service is Step Functions' side of StartExecution.
type service struct {
	got  *sfn.StartExecutionInput
	fail error
}

func (s *service) StartExecution(_ context.Context, in *sfn.StartExecutionInput, _ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	s.got = in
	return &sfn.StartExecutionOutput{}, s.fail
}

func TestAnExecutionStartsWithAllThatItsParticipantsNeed(t *testing.T) {
	s := &service{}
	err := (&stepfunctions.Starter{API: s, Machine: "arn:machine"}).Start(t.Context(), "chk_1-1", checkout.Input{
		CheckoutID: "chk_1", MerchantID: "alpha", PaymentID: "pay_1", Reference: "order-42",
		Lines: []checkout.Item{{SKU: "tee", Quantity: 2, UnitAmount: 2500}}, Pieces: []checkout.Pieces{{SKU: "tee", Quantity: 2}},
		Amount: 5000, Currency: "JPY", Email: "a@example.com",
	})
	want := `{"checkout_id":"chk_1","merchant_id":"alpha","payment_id":"pay_1","reference":"order-42",` +
		`"lines":[{"sku":"tee","quantity":2,"unit_amount":2500}],"pieces":[{"sku":"tee","quantity":2}],` +
		`"amount":5000,"currency":"JPY","email":"a@example.com"}`
	if err != nil || aws.ToString(s.got.Input) != want || aws.ToString(s.got.Name) != "chk_1-1" || aws.ToString(s.got.StateMachineArn) != "arn:machine" {
		t.Errorf("got %+v %v, want input %s", s.got, err, want)
	}
}

func TestANameThatExistsIsASuccessAndNothingElseIs(t *testing.T) {
	for _, tt := range []struct {
		fail error
		ok   bool
	}{
		{nil, true},
		{&types.ExecutionAlreadyExists{}, true},
		{&types.ExecutionLimitExceeded{}, false},
		{errors.New("no answer"), false},
	} {
		err := (&stepfunctions.Starter{API: &service{fail: tt.fail}}).Start(t.Context(), "n", checkout.Input{})
		if (err == nil) != tt.ok || !tt.ok && !errors.Is(err, tt.fail) {
			t.Errorf("%v: got %v, want success %t", tt.fail, err, tt.ok)
		}
	}
}
