package simulator

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

//go:embed redirect.html
var redirectPage string

var redirectTemplate = template.Must(template.New("redirect").Parse(redirectPage))

// What the customer can choose. Abandoning changes nothing here.
const (
	outcomeApprove = "approve"
	outcomeDecline = "decline"
	outcomeAbandon = "abandon"
)

// redirectView is what the customer's page shows.
type redirectView struct {
	Charge    chargeView
	Open      bool // there is a choice to make
	ReturnURL string
}

func showRedirect(c *call) {
	w := c.world
	w.mu.Lock()
	ch, err := w.findRedirect(c.request.PathValue("id"))
	var page redirectView
	if err == nil {
		page = w.redirectView(ch)
	}
	w.mu.Unlock()
	if err != nil {
		c.refuse(err)
		return
	}
	c.sendPage(http.StatusOK, page)
}

// chooseRedirect takes the customer's choice, once. JSON is answered with the
// charge, a form with the way back to the merchant or a page.
func chooseRedirect(c *call) {
	outcome, form, err := readOutcome(c)
	if err != nil {
		c.refuse(err)
		return
	}
	w := c.world
	w.mu.Lock()
	ch, err := w.findRedirect(c.request.PathValue("id"))
	if err != nil {
		w.mu.Unlock()
		c.refuse(err)
		return
	}
	status := http.StatusOK
	var done answer
	if err := w.choose(ch, outcome, c.answered); err != nil {
		status, done = err.status, err.answer(w.config.PublicURL)
	} else {
		done = w.chargeAnswer(status, ch)
	}
	page := w.redirectView(ch)
	w.mu.Unlock()
	switch {
	case !form:
		c.send(done)
	case status == http.StatusOK && page.ReturnURL != "":
		c.writer.Header().Set("Location", page.ReturnURL)
		c.write(answer{status: http.StatusSeeOther}, "text/html; charset=utf-8")
	default:
		c.sendPage(status, page)
	}
}

// readOutcome reads the choice, and says whether it came as a form.
func readOutcome(c *call) (outcome string, form bool, err *refusal) {
	// A JSON object is taken for what it is: clients that post one by hand often call it a form.
	object := strings.HasPrefix(strings.TrimSpace(string(c.body)), "{")
	form = !object && strings.HasPrefix(c.request.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
	if form {
		values, _ := url.ParseQuery(string(c.body)) // what cannot be read is no outcome
		outcome = values.Get("outcome")
	} else {
		body, err := c.object()
		if err != nil {
			return "", false, err
		}
		if outcome, err = body.text("outcome", maxText); err != nil {
			return "", false, err
		}
	}
	if outcome != outcomeApprove && outcome != outcomeDecline && outcome != outcomeAbandon {
		return "", form, invalid("outcome", "must be approve or decline")
	}
	return outcome, form, nil
}

// choose applies a choice to a charge that waits for it. mu is held.
func (w *world) choose(c *charge, outcome string, after <-chan struct{}) *refusal {
	if c.status != statusRequiresAction {
		return wrongStatus(c, "choice_made", "There is no choice left to make.")
	}
	switch outcome {
	case outcomeApprove:
		w.approve(c, after)
	case outcomeDecline:
		w.decline(c, authenticationFailed, after)
	}
	return nil
}

// findRedirect is the charge of a redirect address. mu is held.
func (w *world) findRedirect(id string) (*charge, *refusal) {
	c, err := w.find(id)
	if err != nil {
		return nil, err
	}
	if c.behaviour.beginning != beginRedirect {
		return nil, &refusal{status: http.StatusNotFound, code: "redirect_not_found", message: "This charge has no redirect."}
	}
	return c, nil
}

func (w *world) redirectView(c *charge) redirectView {
	return redirectView{Charge: c.view(w.config.PublicURL), Open: c.status == statusRequiresAction, ReturnURL: c.returnURL}
}

// sendPage shows the customer's page. It needs no script and takes none; where
// its form may lead is left open, since the merchant's address is the charge's own.
func (c *call) sendPage(status int, page redirectView) {
	var text bytes.Buffer
	if err := redirectTemplate.Execute(&text, page); err != nil { // the template and its data are ours
		panic(err)
	}
	header := c.writer.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	c.write(answer{status, text.Bytes()}, "text/html; charset=utf-8")
}
