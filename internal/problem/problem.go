// Package problem is the errors that clients see: application/problem+json by
// RFC 9457, with a stable code. The set of codes is closed. A problem's text is
// written for the client and never taken from an internal error.
package problem

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// ContentType is the media type of a problem.
const ContentType = "application/problem+json"

// typePrefix is what the type of every problem starts with; its code follows.
const typePrefix = "urn:kessai:problem:"

// Code names a kind of problem. It is stable: programs decide by it.
type Code string

// Codes, by status.
const (
	IdempotencyKeyRequired Code = "idempotency_key_required"
	IdempotencyKeyInvalid  Code = "idempotency_key_invalid"
	InvalidRequest         Code = "invalid_request"
	InvalidJSON            Code = "invalid_json"
	BodyTooLarge           Code = "body_too_large"
	CardDataRejected       Code = "card_data_rejected"

	Unauthorized     Code = "unauthorized"
	Forbidden        Code = "forbidden"
	NotFound         Code = "not_found"
	MethodNotAllowed Code = "method_not_allowed"

	IdempotencyInProgress Code = "idempotency_in_progress"
	ReferenceInUse        Code = "reference_in_use"
	InvalidStatus         Code = "invalid_status"
	PaymentCaptured       Code = "payment_captured"
	PaymentDisputed       Code = "payment_disputed"
	CaptureRefused        Code = "capture_refused"
	CheckoutPending       Code = "checkout_pending"
	TooManyKeys           Code = "too_many_keys"

	PayloadTooLarge Code = "payload_too_large"

	IdempotencyKeyReused Code = "idempotency_key_reused"
	AmountTooLarge       Code = "amount_too_large"

	Internal    Code = "internal"
	Unavailable Code = "unavailable"
)

type kind struct {
	status int
	title  string
}

var kinds = map[Code]kind{
	IdempotencyKeyRequired: {http.StatusBadRequest, "Idempotency key required"},
	IdempotencyKeyInvalid:  {http.StatusBadRequest, "Idempotency key invalid"},
	InvalidRequest:         {http.StatusBadRequest, "Invalid request"},
	InvalidJSON:            {http.StatusBadRequest, "Invalid JSON"},
	BodyTooLarge:           {http.StatusBadRequest, "Body too large"},
	CardDataRejected:       {http.StatusBadRequest, "Card data rejected"},
	Unauthorized:           {http.StatusUnauthorized, "Unauthorized"},
	Forbidden:              {http.StatusForbidden, "Forbidden"},
	NotFound:               {http.StatusNotFound, "Not found"},
	MethodNotAllowed:       {http.StatusMethodNotAllowed, "Method not allowed"},
	IdempotencyInProgress:  {http.StatusConflict, "Request in progress"},
	ReferenceInUse:         {http.StatusConflict, "Reference in use"},
	InvalidStatus:          {http.StatusConflict, "Invalid status"},
	PaymentCaptured:        {http.StatusConflict, "Payment captured"},
	PaymentDisputed:        {http.StatusConflict, "Payment disputed"},
	CaptureRefused:         {http.StatusConflict, "Capture refused"},
	CheckoutPending:        {http.StatusConflict, "Checkout pending"},
	TooManyKeys:            {http.StatusConflict, "Too many keys"},
	PayloadTooLarge:        {http.StatusRequestEntityTooLarge, "Payload too large"},
	IdempotencyKeyReused:   {http.StatusUnprocessableEntity, "Idempotency key reused"},
	AmountTooLarge:         {http.StatusUnprocessableEntity, "Amount too large"},
	Internal:               {http.StatusInternalServerError, "Internal error"},
	Unavailable:            {http.StatusServiceUnavailable, "Unavailable"},
}

// Codes lists every Code once, in no order.
func Codes() []Code {
	all := make([]Code, 0, len(kinds))
	for code := range kinds {
		all = append(all, code)
	}
	return all
}

// Error is a request that is answered with a problem.
type Error struct {
	Code   Code
	Detail string // this case, for people; never an internal error's text, never a value of the request
	// PaymentID is the payment that holds the reference, with ReferenceInUse.
	PaymentID string
	// Fields are the fields that are not valid, with InvalidRequest.
	Fields []Field
	// RetryAfter, when not 0, is when to repeat the request.
	RetryAfter time.Duration
	// Allow is the methods that the path takes, with MethodNotAllowed.
	Allow string
}

// Field is one field of a request that is not valid.
type Field struct {
	Name    string `json:"field"`   // its path, such as items[0].sku
	Message string `json:"message"` // what is wrong with it; never its value
}

// New is an Error of that code.
func New(code Code, detail string) *Error { return &Error{Code: code, Detail: detail} }

// Invalid is an Error about one field.
func Invalid(field, message string) *Error {
	return &Error{Code: InvalidRequest, Detail: "One field is not valid.", Fields: []Field{{field, message}}}
}

func (e *Error) Error() string { return fmt.Sprintf("problem: %s: %s", e.Code, e.Detail) }

// Status is the HTTP status of e. A code that is not of the set is 500.
func (e *Error) Status() int {
	if k, ok := kinds[e.Code]; ok {
		return k.status
	}
	return http.StatusInternalServerError
}

// Header is the HTTP headers of e.
func (e *Error) Header() map[string]string {
	h := map[string]string{"Content-Type": ContentType, "Cache-Control": "no-store"}
	if e.RetryAfter > 0 {
		h["Retry-After"] = Seconds(e.RetryAfter)
	}
	if e.Allow != "" {
		h["Allow"] = e.Allow
	}
	if e.Code == Unauthorized {
		h["WWW-Authenticate"] = "Bearer"
	}
	return h
}

// Body is the JSON text of e.
func (e *Error) Body() []byte {
	document := struct {
		Type      string  `json:"type"`
		Title     string  `json:"title"`
		Status    int     `json:"status"`
		Detail    string  `json:"detail"`
		Code      Code    `json:"code"`
		PaymentID string  `json:"payment_id,omitzero"`
		Fields    []Field `json:"errors,omitempty"`
	}{typePrefix + string(e.Code), kinds[e.Code].title, e.Status(), e.Detail, e.Code, e.PaymentID, e.Fields}
	body, err := json.Marshal(document)
	if err != nil {
		// Strings and numbers only: a text that is not UTF-8 is a defect here.
		panic("problem: encode: " + err.Error())
	}
	return body
}

// maxRetryAfter bounds Retry-After, so that no client sleeps for good.
const maxRetryAfter = time.Hour

// Seconds is d for a Retry-After header: whole seconds, rounded up, 1 to 3600.
func Seconds(d time.Duration) string {
	s := math.Ceil(min(d, maxRetryAfter).Seconds())
	return strconv.Itoa(max(1, int(s)))
}
