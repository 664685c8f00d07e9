/*
Package ingress takes webhooks of PSPs in, as a Lambda handler behind a function
URL: POST /{psp}.

It hands the raw bytes and the headers to the webhook flow and answers with the
flow's word: 200 and what the PSP expects once the notification is stored, 401 for
a signature that is refused, 503 when the store gave no answer, so that the PSP
sends again. Nothing of a body is logged or repeated, and nothing of a path.
*/
package ingress

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/problem"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/webhook"
)

// maxBody is the largest delivery in bytes. A PSP's largest batch is a tenth of it.
const maxBody = 262_144

// Receiver takes deliveries in. Its errors are webhook.ErrUnknownPSP,
// psp.ErrSignature, and others when the store gave no answer.
type Receiver interface {
	Receive(ctx context.Context, name string, d psp.Delivery) (psp.Acknowledgement, error)
}

// Config is what a Handler works with.
type Config struct {
	Receiver Receiver
	Now      func() time.Time
	Log      *slog.Logger
}

// Handler serves the function URL. Make it with New. It is safe for concurrent use.
type Handler struct {
	config Config
}

// New is a Handler.
func New(c Config) *Handler { return &Handler{c} }

// Handle serves one delivery. Its error is always nil: what goes wrong is a problem
// in the answer.
func (h *Handler) Handle(ctx context.Context, request events.LambdaFunctionURLRequest) (response events.LambdaFunctionURLResponse, err error) {
	started := h.config.Now()
	name := ""
	defer func() {
		if cause := recover(); cause != nil {
			h.config.Log.ErrorContext(ctx, "delivery panicked", "stack", string(debug.Stack()))
			response = refusal(problem.New(problem.Internal, "The delivery could not be taken in."))
		}
		h.config.Log.InfoContext(ctx, "delivery", "psp", name, "status", response.StatusCode,
			"duration_ms", h.config.Now().Sub(started).Milliseconds())
	}()
	ack, known, err := h.receive(ctx, request)
	name = known
	if err != nil {
		return refusal(h.problemOf(ctx, known, err)), nil
	}
	return events.LambdaFunctionURLResponse{
		StatusCode: http.StatusOK, Headers: map[string]string{"Content-Type": ack.ContentType}, Body: ack.Body,
	}, nil
}

var errInvalidEncoding = problem.New(problem.Unauthorized, "The delivery can't be read.")

// receive judges the delivery. known is the PSP's name once it is one of ours: only
// then it is fit for a log line.
func (h *Handler) receive(ctx context.Context, request events.LambdaFunctionURLRequest) (ack psp.Acknowledgement, known string, err error) {
	if request.RequestContext.HTTP.Method != http.MethodPost {
		return ack, "", &problem.Error{Code: problem.MethodNotAllowed, Detail: "Deliveries are posted.", Allow: http.MethodPost}
	}
	body := []byte(request.Body)
	if request.IsBase64Encoded {
		if body, err = base64.StdEncoding.DecodeString(request.Body); err != nil {
			return ack, "", errInvalidEncoding
		}
	}
	if len(body) > maxBody {
		return ack, "", problem.New(problem.PayloadTooLarge, "A delivery may be up to 262144 bytes.")
	}
	name := strings.TrimPrefix(request.RawPath, "/")
	header := http.Header{}
	for n, value := range request.Headers {
		header.Set(n, value)
	}
	ack, err = h.config.Receiver.Receive(ctx, name, psp.Delivery{Header: header, Body: body, ReceivedAt: h.config.Now()})
	if errors.Is(err, webhook.ErrUnknownPSP) {
		name = ""
	}
	return ack, name, err
}

// sendAgainAfter is when a PSP may send again what could not be stored.
const sendAgainAfter = time.Second

func (h *Handler) problemOf(ctx context.Context, name string, err error) *problem.Error {
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return p
	}
	switch {
	case errors.Is(err, webhook.ErrUnknownPSP):
		return problem.New(problem.NotFound, "There is no such resource.")
	case errors.Is(err, psp.ErrSignature):
		return problem.New(problem.Unauthorized, "The signature does not verify.")
	}
	h.config.Log.ErrorContext(ctx, "delivery not stored", "psp", name, "reason", err.Error())
	return &problem.Error{Code: problem.Unavailable, Detail: "Send the delivery again.", RetryAfter: sendAgainAfter}
}

func refusal(p *problem.Error) events.LambdaFunctionURLResponse {
	return events.LambdaFunctionURLResponse{StatusCode: p.Status(), Headers: p.Header(), Body: string(p.Body())}
}
