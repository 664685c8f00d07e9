package payment_test

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
	texttemplate "text/template"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/kessai/kessai/internal/payment"
)

// The canaries contain this word and nothing else here does.
const canary = "canary"

func leaks(text string) bool { return strings.Contains(strings.ToLower(text), canary) }

// Every way of printing a secret that does not ask for it gives a placeholder.
// The verbs that it has no use for print their operand too, so they are here.
func TestSecretsPrintAsPlaceholders(t *testing.T) {
	secret := canaryClient
	type holder struct {
		Secret payment.Secret
		List   []payment.Secret
		ByName map[payment.Secret]payment.Secret
		Any    any
		Ptr    *payment.Secret
	}
	held := holder{secret, []payment.Secret{secret}, map[payment.Secret]payment.Secret{secret: secret}, secret, &secret}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%U", "%e", "%g", "%b", "%o", "%O", "%20v", "%-5.2s", "%z", "no verb"} {
		for _, value := range []any{secret, &secret, held, []any{held}, fmt.Errorf("wrapped: %v", secret)} {
			if got := fmt.Sprintf(verb, value); leaks(got) {
				t.Errorf("%s of a %T: got %s", verb, value, got)
			}
		}
	}
	if v := slog.AnyValue(secret).Resolve(); v.Kind() != slog.KindString || leaks(v.String()) {
		t.Errorf("got a %s %s for a log handler, want a placeholder", v.Kind(), v)
	}
	if got := fmt.Sprint(secret) + fmt.Sprintln(held); leaks(got) || !strings.Contains(got, "[redacted]") {
		t.Errorf("got %q, want placeholders", got)
	}
	if secret.Reveal() != "canary_client_secret" {
		t.Errorf("got %q revealed, want the value", secret.Reveal())
	}
	if got := fmt.Sprintf("%v|%#v|%s", payment.Secret(""), payment.Secret(""), payment.Secret("").String()); got != "||" {
		t.Errorf("got %q for no secret, want nothing: a placeholder would say that there is one", got)
	}
}

func TestSecretsEncodeAsPlaceholders(t *testing.T) {
	held := struct {
		Secret payment.Secret
		Ptr    *payment.Secret
		List   []payment.Secret
	}{canaryRedirect, new(canaryClient), []payment.Secret{canaryClient}}
	standard, err := stdjson.Marshal(held)
	strict, err2 := json.Marshal(held)
	if err != nil || err2 != nil || leaks(string(standard)+string(strict)) {
		t.Errorf("got %s and %s, %v, %v; want placeholders", standard, strict, err, err2)
	}
	var out bytes.Buffer
	if err := texttemplate.Must(texttemplate.New("").Parse("{{.Secret}} {{.}}")).Execute(&out, held); err != nil {
		t.Fatal(err)
	}
	if err := template.Must(template.New("").Parse(`<a href="{{.Secret}}">{{.Secret}}</a>{{.}}`)).Execute(&out, held); err != nil {
		t.Fatal(err)
	}
	if leaks(out.String()) {
		t.Errorf("got %s, want placeholders", out.String())
	}
}

// forged is a payment in each status that holds secrets which Apply would have
// erased, as a defect in a store might bring it.
func forged(t testing.TB) map[payment.Status]payment.Payment {
	all := inStatus(t)
	for status, p := range all {
		p.RedirectURL, p.ClientSecret = canaryRedirect, canaryClient
		all[status] = p
	}
	unknown := all[payment.StatusCaptured]
	unknown.Status = "surprise"
	all["surprise"] = unknown
	return all
}

// S-SECRET: a view holds the redirect address and the client secret only while
// the customer must act, whatever the payment holds.
func TestViewHoldsSecretsOnlyWhileTheCustomerMustAct(t *testing.T) {
	for status, p := range forged(t) {
		v := p.View()
		body := encode(t, v)
		if status == payment.StatusRequiresAction {
			if v.NextAction == nil || v.NextAction.Type != "redirect" || v.NextAction.RedirectURL != canaryRedirect.Reveal() ||
				v.ClientSecret == nil || *v.ClientSecret != canaryClient.Reveal() {
				t.Errorf("%s: got %s, want the redirect and the client secret", status, body)
			}
		} else if v.NextAction != nil || v.ClientSecret != nil || leaks(body) {
			t.Errorf("%s: got %s, want no secret", status, body)
		}
		if public := p.PublicView(); public.NextAction != nil || public.ClientSecret != nil || leaks(encode(t, public)) {
			t.Errorf("%s: the public view is %s, want no secret", status, encode(t, public))
		}
	}
	plain := inStatus(t)[payment.StatusRequiresAction]
	plain.RedirectURL, plain.ClientSecret = "", ""
	if v := plain.View(); v.NextAction != nil || v.ClientSecret != nil {
		t.Errorf("got %+v, want neither action nor secret where the PSP gave none", v)
	}
}

// Secrets live on the payment as long as the customer must act, and no longer.
func TestApplyErasesSecretsWithTheStatus(t *testing.T) {
	waiting := inStatus(t)[payment.StatusRequiresAction]
	if waiting.RedirectURL != canaryRedirect || waiting.ClientSecret != canaryClient {
		t.Fatalf("got %q and %q held, want both secrets", waiting.RedirectURL.Reveal(), waiting.ClientSecret.Reveal())
	}
	if p := after(t, waiting, cancel(payment.CancelByMerchant)); p.RedirectURL != canaryRedirect || p.ClientSecret != canaryClient {
		t.Error("a change in requires_action lost the secrets")
	}
	for status, p := range forged(t) {
		for _, e := range everyEvent() {
			next, _, changed, _ := p.Apply(e)
			if changed && next.Status != payment.StatusRequiresAction && (next.RedirectURL != "" || next.ClientSecret != "") {
				t.Errorf("%s in %s: secrets are held in %s, want them erased", e.Type, status, next.Status)
			}
		}
	}
}

// everyEvent is each event once, with all that a payment could believe.
func everyEvent() []payment.Event {
	var all []payment.Event
	for _, kind := range payment.EventTypes() {
		e := fact(kind)
		e.RedirectURL, e.ClientSecret = canaryRedirect, canaryClient
		e.Captured, e.Cause, e.Operation, e.Sends = whole, payment.CancelByMerchant, payment.OperationCreate, 1
		e.Refund = payment.RefundEvent{ID: ours1, PSPReference: "rf_1", Amount: whole}
		e.Dispute = payment.Dispute{PSPReference: "dp_1", Amount: whole}
		all = append(all, e)
		e.Refund.ID = ""
		all = append(all, e)
	}
	return all
}

func TestRowsHoldNoSecret(t *testing.T) {
	rows := 0
	for status, p := range forged(t) {
		for _, e := range everyEvent() {
			_, r, changed, err := p.Apply(e)
			if changed {
				rows++
			}
			if text := encode(t, r) + fmt.Sprintf("%v%+v%#v", r, r, err); leaks(text) {
				t.Errorf("%s in %s: got %s, want no secret", e.Type, status, text)
			}
		}
	}
	if rows < 30 {
		t.Errorf("got %d rows, want every kind of one", rows)
	}
	for _, create := range []func(payment.Terms, time.Time) (payment.Payment, payment.Row){payment.New, payment.NewSent} {
		if _, r := create(terms(payment.CaptureAutomatic), start); leaks(encode(t, r)) {
			t.Errorf("got row %s of a new payment, want no secret", encode(t, r))
		}
	}
}

// Whatever somebody prints, encodes or logs, on purpose or not, only a View's
// JSON can show a secret.
func TestNothingPrintedOrLoggedHoldsASecret(t *testing.T) {
	waiting := forged(t)[payment.StatusRequiresAction]
	event := fact(payment.EventActionRequired)
	view := waiting.View()
	values := map[string]any{
		"payment": waiting, "payment pointer": &waiting, "payments": []payment.Payment{waiting},
		"event": event, "event pointer": &event, "terms": terms(payment.CaptureManual),
		"view": view, "view pointer": &view, "next action": *view.NextAction, "next action pointer": view.NextAction,
	}
	for name, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			if got := fmt.Sprintf(verb, value); leaks(got) {
				t.Errorf("%s by %s: got %s", name, verb, got)
			}
		}
		for form, got := range logged(name, value) {
			if leaks(got) {
				t.Errorf("%s in a %s log: got %s", name, form, got)
			}
		}
		if !strings.HasPrefix(name, "view") && !strings.HasPrefix(name, "next") && leaks(encode(t, value)) {
			t.Errorf("%s as JSON: got %s", name, encode(t, value))
		}
	}
	for _, want := range []string{`"id":"` + string(paymentID), `"status":"requires_action"`, `"version":2`, `"amount":5000`, `"currency":"JPY"`, `"in_doubt":false`} {
		if got := logged("payment", waiting)["json"]; !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}

func logged(name string, value any) map[string]string {
	var text, structured bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&structured, nil)} {
		slog.New(h).With("before", value).Info("message", "value", value, slog.Group("group", "inner", value))
	}
	return map[string]string{"text": text.String(), "json": structured.String()}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	standard, err := stdjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(standard)
}

// holders are the exported types that may hold a secret, and why.
var holders = map[string]string{
	"Secret":     "it is one",
	"Terms":      "the token to pay with",
	"Payment":    "the state, until the customer has acted",
	"Event":      "what the PSP told",
	"View":       "the merchant's answer while the customer must act",
	"NextAction": "the part of View that has the redirect",
}

// A new type that could carry a secret has to be thought about here.
func TestNoOtherTypeCanHoldASecret(t *testing.T) {
	known := map[string]reflect.Type{}
	for _, v := range []any{
		payment.CancelCause(""), payment.CaptureMethod(""),
		payment.Dispute{},
		payment.DisputeStatus(""),
		payment.DisputeView{},
		payment.Event{},
		payment.EventType(""),
		payment.Failure{},
		payment.FailureView{},
		payment.ID(""),
		payment.MismatchError{},
		payment.NextAction{},
		payment.Operation{},
		payment.OperationName(""), payment.OperationState(""),
		payment.Payment{},
		payment.Policy{},
		payment.Refund{},
		payment.RefundEvent{},
		payment.RefundID(""), payment.RefundStatus(""),
		payment.RefundView{},
		payment.Row{},
		payment.RowData{},
		payment.RowDispute{},
		payment.RowRefund{},
		payment.Secret(""),
		payment.Seen{},
		payment.Status(""),
		payment.Step{},
		payment.StepKind(0),
		payment.Terms{},
		payment.TransitionError{},
		payment.Verdict(0),
		payment.View{},
	} {
		known[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	for _, name := range exportedTypes(t) {
		typ, ok := known[name]
		if !ok {
			t.Errorf("%s is a new type: add it here", name)
			continue
		}
		_, allowed := holders[name]
		if holds := canHoldASecret(typ, map[reflect.Type]bool{}); holds != allowed {
			t.Errorf("%s can hold a secret: %v, want %v", name, holds, allowed)
		}
	}
}

func canHoldASecret(typ reflect.Type, seen map[reflect.Type]bool) bool {
	if typ == reflect.TypeFor[payment.Secret]() {
		return true
	}
	if seen[typ] {
		return false
	}
	seen[typ] = true
	switch kind := typ.Kind(); {
	case typ.PkgPath() == "time":
		return false
	case kind == reflect.Interface:
		return typ.NumMethod() == 0 // an any could hold one
	case kind == reflect.Map && canHoldASecret(typ.Key(), seen):
		return true
	case kind == reflect.Pointer, kind == reflect.Slice, kind == reflect.Array, kind == reflect.Map:
		return canHoldASecret(typ.Elem(), seen)
	case kind == reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Name == "RedirectURL" || f.Name == "ClientSecret" || canHoldASecret(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// exportedTypes are the names of the package's exported types, from its source.
func exportedTypes(t *testing.T) []string {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					if name := s.(*ast.TypeSpec).Name; name.IsExported() {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	if len(names) < 30 {
		t.Fatalf("got %d exported types, want all of them", len(names))
	}
	return names
}
