package psptest

import "github.com/kessai/kessai/internal/psp"

// Canary is text that a harness puts into every faulty answer. No error may
// repeat it.
const Canary = "canary-4f1d7c"

// Fault is one way for a call to go wrong.
type Fault string

// Faults of calls. What answers wrongly did what it was asked to, unless its
// name says otherwise.
const (
	FaultConnectionRefused Fault = "connection refused"
	FaultSilenceBefore     Fault = "no answer and no effect"
	FaultSilenceAfter      Fault = "no answer"
	FaultCut               Fault = "connection cut instead of an answer"
	FaultErrorBefore       Fault = "500 without effect"
	FaultErrorAfter        Fault = "500"
	FaultUnavailable       Fault = "503 without effect"
	FaultGatewayPage       Fault = "502 with a page of HTML"
	FaultRefusalPage       Fault = "404 with a page of HTML, without effect"
	FaultUnauthorized      Fault = "401 without effect"
	FaultRedirected        Fault = "307 to another address, without effect"
	FaultThrottled         Fault = "429 with Retry-After of 7 seconds, without effect"
	FaultThrottledUntil    Fault = "429 with Retry-After of a date 7 seconds on, without effect"
	FaultThrottledForever  Fault = "429 with Retry-After of years, without effect"
	FaultInProgress        Fault = "409 the same key is running, without effect"
	FaultEmpty             Fault = "200 with nothing"
	FaultPage              Fault = "200 with a page of HTML"
	FaultWrongContentType  Fault = "200 with JSON that says it is text"
	FaultTruncated         Fault = "200 with half an answer and a connection cut"
	FaultTruncatedJSON     Fault = "200 with half an answer that says it is whole"
	FaultHuge              Fault = "200 with an answer of many megabytes"
	FaultUnknownStatus     Fault = "200 with a status word that nobody knows"
	FaultMissingID         Fault = "200 without an id"
	FaultFraction          Fault = "200 with a fraction for an amount"
	FaultExponent          Fault = "200 with an exponent in an amount"
	FaultTextAmount        Fault = "200 with a string for an amount"
	FaultNullAmount        Fault = "200 with null for an amount"
	FaultNegativeAmount    Fault = "200 with a negative amount"
	FaultDuplicateMember   Fault = "200 with a member twice"
	FaultTrailingData      Fault = "200 with two answers in one"
)

// Effect reports whether the call did what it was asked to.
func (f Fault) Effect() bool {
	switch f {
	case FaultConnectionRefused, FaultSilenceBefore, FaultErrorBefore, FaultUnavailable, FaultRefusalPage,
		FaultUnauthorized, FaultRedirected, FaultThrottled, FaultThrottledUntil, FaultThrottledForever, FaultInProgress:
		return false
	case FaultSilenceAfter, FaultCut, FaultErrorAfter, FaultGatewayPage, FaultEmpty, FaultPage, FaultWrongContentType,
		FaultTruncated, FaultTruncatedJSON, FaultHuge, FaultUnknownStatus, FaultMissingID, FaultFraction, FaultExponent,
		FaultTextAmount, FaultNullAmount, FaultNegativeAmount, FaultDuplicateMember, FaultTrailingData:
	}
	return true
}

// Outcome is what a caller must be told.
func (f Fault) Outcome() psp.Outcome {
	switch f {
	case FaultConnectionRefused:
		return psp.OutcomeNotSent
	case FaultThrottled, FaultThrottledUntil, FaultThrottledForever:
		return psp.OutcomeThrottled
	case FaultInProgress:
		return psp.OutcomeInProgress
	case FaultSilenceBefore, FaultSilenceAfter, FaultCut, FaultErrorBefore, FaultErrorAfter, FaultUnavailable,
		FaultGatewayPage, FaultRefusalPage, FaultUnauthorized, FaultRedirected, FaultEmpty, FaultPage,
		FaultWrongContentType, FaultTruncated, FaultTruncatedJSON, FaultHuge, FaultUnknownStatus, FaultMissingID,
		FaultFraction, FaultExponent, FaultTextAmount, FaultNullAmount, FaultNegativeAmount, FaultDuplicateMember,
		FaultTrailingData:
	}
	return psp.OutcomeUnknown
}

// Faults are all of them.
func Faults() []Fault {
	return []Fault{
		FaultConnectionRefused, FaultSilenceBefore, FaultSilenceAfter, FaultCut, FaultErrorBefore, FaultErrorAfter,
		FaultUnavailable, FaultGatewayPage, FaultRefusalPage, FaultUnauthorized, FaultRedirected, FaultThrottled,
		FaultThrottledUntil, FaultThrottledForever, FaultInProgress, FaultEmpty, FaultPage, FaultWrongContentType,
		FaultTruncated, FaultTruncatedJSON, FaultHuge, FaultUnknownStatus, FaultMissingID, FaultFraction, FaultExponent,
		FaultTextAmount, FaultNullAmount, FaultNegativeAmount, FaultDuplicateMember, FaultTrailingData,
	}
}
