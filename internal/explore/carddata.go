package explore

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	principal "github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// pan is a card number as clients write it: no digit of it may be kept anywhere.
const pan = "4242 4242 4242 4242"

// tokens is how payment methods begin: only the payment's own state keeps one.
const tokens = "tok_"

// bare is a text without what is written between digits.
func bare(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return -1
		}
		return r
	}, text)
}

// holdsCard looks for the number, however it is written, where its first group is.
func holdsCard(text string) bool {
	return strings.Contains(text, pan[:4]) && strings.Contains(bare(text), bare(pan))
}

// leak says what of S-NO-PAN a text breaks, "" for nothing.
func leak(text string) string {
	if holdsCard(text) {
		return "a card number"
	}
	if strings.Contains(text, tokens) {
		return "a payment method"
	}
	return ""
}

// checkText is S-NO-PAN of a text that leaves the process: a log line, an answer, an
// event on the bus.
func (w *world) checkText(where, text string) {
	if what := leak(text); what != "" {
		w.violate("S-NO-PAN", "%s holds %s", where, what)
	}
}

// checkLeak is S-NO-PAN of what is stored.
func (w *world) checkLeak(where string) { w.violate("S-NO-PAN", "%s", where) }

// leakOf says where an item holds what nothing may hold, "" for nowhere.
func leakOf(key store.Key, item store.Item) string {
	_, state := cutState(key)
	if what := leak(key.String()); what != "" {
		return "a key holds " + what
	}
	for name, v := range item {
		text, flat := v.(string)
		if !flat {
			text = fmt.Sprint(v)
		}
		if state && name == "payment_method" {
			text = strings.TrimPrefix(text, tokens)
		}
		if what := leak(text); what != "" {
			return key.String() + " holds " + what
		}
	}
	return ""
}

// logSink is where the product's log lines go: they are looked at, and forgotten.
type logSink struct{ w *world }

func (s logSink) Write(line []byte) (int, error) {
	text := string(line)
	if leak(text) != "" {
		s.w.effect(text, func(w *world) { w.checkText("a log line", text) })
	}
	return len(line), nil
}

// logger takes every line of the product's code.
func (w *world) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(logSink{w}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// post is a request for a payment through the API's own handler.
func (w *world) post(key string, body map[string]any) events.APIGatewayV2HTTPResponse {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	r := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RawPath: "/v1/payments", Body: string(raw),
		Headers: map[string]string{"content-type": "application/json", "idempotency-key": key},
	}
	r.RequestContext.HTTP.Method, r.RequestContext.HTTP.Path = http.MethodPost, r.RawPath
	r.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		Lambda: map[string]any{principal.ContextMerchant: merchant, principal.ContextRole: string(principal.RoleMerchant)},
	}
	answer, _ := w.api.Handle(background(), r) // its error is always nil
	w.effect(answer, func(w *world) { w.checkText("an answer", answer.Body+fmt.Sprint(answer.Headers)) })
	return answer
}

// wanted is a body that is right, with other values for some of its fields.
func wanted(other map[string]any) map[string]any {
	body := map[string]any{
		"amount": amount, "currency": "JPY", "payment_method": psptest.TokenCaptured, "capture_method": "automatic",
		"reference": "order-42", "return_url": "https://shop.example/return",
	}
	for name, v := range other {
		body[name] = v
	}
	return body
}

// careless is a client that sends a card number wherever a text goes.
func careless() *actor {
	return process("careless", nil, func(w *world) {
		for i, other := range []map[string]any{
			{"payment_method": pan},
			{"reference": pan},
			{"metadata": map[string]any{"note": pan}},
			{"metadata": map[string]any{pan: "x"}},
			{"return_url": "https://shop.example/" + bare(pan)},
			{"currency": pan},
			{"psp": pan},
			{pan: "x"},
		} {
			if m := w.scenario.mutant; m != nil && m.Careless {
				w.pay("careless", "careless", terms{token: psptest.TokenCaptured, reference: pan})
				return
			}
			if answer := w.post(fmt.Sprint("careless-", i), wanted(other)); answer.StatusCode != http.StatusBadRequest && answer.StatusCode != http.StatusServiceUnavailable {
				w.effect(answer.StatusCode, func(w *world) {
					w.violate("S-NO-PAN", "a card number in %v is answered with %d", other, answer.StatusCode)
				})
			}
			w.effect("sent", func(w *world) { w.reach("card number sent") })
		}
	})
}

// shopper is a client that sends what it should, through the API.
func shopper() *actor {
	return process("shopper", nil, func(w *world) {
		w.effect("wants", func(w *world) { w.wanted++ })
		w.post("shopper", wanted(nil))
	})
}
