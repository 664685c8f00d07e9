package simulator

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/kessai/kessai/internal/psp"
)

// Codes that are not about the request itself but about its key.
const (
	codeInProgress = "idempotency_in_progress"
	codeKeyReused  = "idempotency_key_reused"
)

// maxRetryAfter bounds how long a provider can make us wait; it is no reason to
// leave a payment alone for longer.
const maxRetryAfter = time.Hour

// refused classifies an answer that is JSON but no 2xx.
func refused(operation string, status int, body []byte) *psp.Error {
	code := errorCode(body)
	return &psp.Error{Operation: operation, Outcome: outcomeOf(operation, status, code), Code: code, HTTPStatus: status}
}

func outcomeOf(operation string, status int, code string) psp.Outcome {
	if code == "" { // not the provider's word
		return psp.OutcomeUnknown
	}
	switch status {
	case http.StatusBadRequest:
		return psp.OutcomeRejected
	case http.StatusNotFound:
		if operation == operationLookup { // Lookup knows the one code that is an answer
			return psp.OutcomeUnknown
		}
		return psp.OutcomeRejected
	case http.StatusConflict:
		if code == codeInProgress {
			return psp.OutcomeInProgress
		}
		if operation == operationCreate {
			return psp.OutcomeUnknown
		}
		return psp.OutcomeRejected
	case http.StatusUnprocessableEntity:
		if code == codeKeyReused {
			return psp.OutcomeKeyReused
		}
		return psp.OutcomeRejected
	}
	// 401 and 403 too: they say nothing of an earlier send under the same key.
	return psp.OutcomeUnknown
}

// errorCode is the provider's stable code in {"error":{"code":"…"}}, "" when
// there is none that looks like one.
func errorCode(body []byte) string {
	var content struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &content); err != nil || !isWord(content.Error.Code) {
		return ""
	}
	return content.Error.Code
}

func throttled(operation string, header http.Header) *psp.Error {
	return &psp.Error{
		Operation:  operation,
		Outcome:    psp.OutcomeThrottled,
		HTTPStatus: http.StatusTooManyRequests,
		RetryAfter: retryAfter(header),
	}
}

// retryAfter reads Retry-After (RFC 9110, section 10.2.3): seconds, or a date,
// which is taken relative to the answer's own Date, so that clocks may differ.
// It is 0 when nothing usable is there, and at most maxRetryAfter.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		if seconds > uint64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
