package dynamo

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/kessai/kessai/internal/store"
)

// Codes of errors and of the reasons that a transaction was canceled for. See
// "Error handling with DynamoDB" and TransactionCanceledException.
const (
	codeNone            = "None"
	codeConditionFailed = "ConditionalCheckFailed"
	codeConflict        = "TransactionConflict"
	codeThrottled       = "ThrottlingError"
	codeValidation      = "ValidationError"
	codeThroughput      = "ProvisionedThroughputExceeded"
	tooLargeForPut      = "Item size has exceeded the maximum allowed size"
	tooLargeForUpdate   = "Item size to update has exceeded the maximum allowed size"
)

// judge says what an answer means that no condition can have refused.
func judge(err error) verdict {
	if err == nil {
		return verdict{fate: answered}
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return judgeTransport(err)
	}
	switch code := api.ErrorCode(); code {
	case "ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
		"TransactionConflictException", "TransactionInProgressException", "ReplicatedWriteConflictException":
		return verdict{fate: again, err: err}
	case "InternalServerError", "ServiceUnavailable":
		return verdict{fate: lost, err: err}
	case "ValidationException":
		return verdict{fate: answered, err: invalid(api.ErrorMessage(), err)}
	}
	if api.ErrorFault() == smithy.FaultServer {
		return verdict{fate: lost, err: err}
	}
	if response, ok := errors.AsType[httpError](err); ok && response.HTTPStatusCode() >= 500 {
		return verdict{fate: lost, err: err}
	}
	return verdict{fate: answered, err: err}
}

// httpError is an error of the SDK that came with a response.
type httpError interface {
	error
	HTTPStatusCode() int
}

// judgeTransport judges an error without an answer. Only when no connection came
// about is it sure that nothing happened.
func judgeTransport(err error) verdict {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return verdict{fate: again, err: err}
	}
	return verdict{fate: lost, err: err}
}

// invalid tells an item that became too large from any other malformed request.
func invalid(message string, err error) error {
	if strings.Contains(message, tooLargeForPut) || strings.Contains(message, tooLargeForUpdate) {
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", store.ErrInvalid, err)
}

// judgePlain also knows the refusal of a plain write, and our own success in it.
func judgePlain(err error, writer string) verdict {
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return judge(err)
	}
	return judgeRefusals([]refusal{{item: failed.Item}}, writer)
}

// judgeTransaction also reads the reasons that a transaction was canceled for.
func judgeTransaction(err error, writer string) verdict {
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return judge(err)
	}
	var refusals []refusal
	var malformed error
	busy := false
	for i, reason := range canceled.CancellationReasons {
		switch code := deref(reason.Code); code {
		case codeNone, "":
		case codeConditionFailed:
			refusals = append(refusals, refusal{index: i, item: reason.Item})
		case codeConflict, codeThrottled, codeThroughput:
			busy = true
		case codeValidation:
			malformed = fmt.Errorf("write %d: %w", i, invalid(deref(reason.Message), err))
		default: // not one of ours: DynamoDB's list may grow
			malformed = fmt.Errorf("write %d: canceled for %s: %w", i, code, err)
		}
	}
	switch {
	case refusals != nil:
		v := judgeRefusals(refusals, writer)
		if v.fate == refused && busy {
			v.fate = unclear
		}
		return v
	case malformed != nil:
		return verdict{fate: answered, err: malformed}
	case busy:
		return verdict{fate: again, err: err}
	}
	return verdict{fate: answered, err: err}
}

// refusal is one write whose condition did not hold.
type refusal struct {
	index int
	item  map[string]types.AttributeValue // that refused it
}

// judgeRefusals recognises our own token: then an earlier sending of the same
// call was carried out, all of it.
func judgeRefusals(refusals []refusal, writer string) verdict {
	failure := &store.ConditionError{}
	for _, r := range refusals {
		old, err := fromValues(r.item)
		if err != nil {
			return verdict{fate: answered, err: fmt.Errorf("refused by an unreadable item: %w", err)}
		}
		if old[store.AttrWriter] == writer {
			return verdict{fate: answered}
		}
		failure.Failed = append(failure.Failed, store.Failed{Index: r.index, Old: old})
	}
	return verdict{fate: refused, err: failure}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
