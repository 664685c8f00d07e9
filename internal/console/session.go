package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

const (
	// sessionLife is how long a login lasts: a working day.
	sessionLife = 8 * time.Hour
	cookieName  = "kessai_console"
)

// session is who makes a request. Its zero value is nobody.
type session struct {
	key string // the operator's key that it was made with
	end int64  // Unix seconds; 0 for a Bearer header
	// refused says that a key was given and is none.
	refused bool
}

// sessionOf reads a Bearer header or the session's cookie.
func (h *Handler) sessionOf(ctx context.Context, e events.APIGatewayV2HTTPRequest) (session, error) {
	keys, err := h.config.Keys(ctx)
	if err != nil {
		return session{}, err
	}
	for name, value := range e.Headers {
		scheme, given, _ := strings.Cut(value, " ")
		if strings.EqualFold(name, "Authorization") && strings.EqualFold(scheme, "Bearer") {
			key := matching(keys, strings.TrimSpace(given))
			return session{key: key, refused: key == ""}, nil
		}
	}
	for _, cookie := range e.Cookies {
		if value, ok := strings.CutPrefix(cookie, cookieName+"="); ok {
			return h.fromCookie(keys, value), nil
		}
	}
	return session{}, nil
}

// matching is the operator's key that equals what was given, "" for none. Every
// key is compared, in constant time.
func matching(keys []string, given string) string {
	found := ""
	for _, key := range keys {
		if key != "" && subtle.ConstantTimeCompare([]byte(key), []byte(given)) == 1 {
			found = key
		}
	}
	return found
}

func (h *Handler) fromCookie(keys []string, value string) session {
	text, mac, _ := strings.Cut(value, ".")
	end, err := strconv.ParseInt(text, 10, 64)
	if err != nil || h.config.Now().Unix() >= end {
		return session{}
	}
	for _, key := range keys {
		s := session{key: key, end: end}
		if key != "" && hmac.Equal([]byte(mac), []byte(s.mac("session"))) {
			return s
		}
	}
	return session{}
}

// mac binds a purpose to the session: only who has the key can make it.
func (s session) mac(purpose string) string {
	m := hmac.New(sha256.New, []byte(s.key))
	m.Write([]byte("console\x00" + purpose + "\x00" + strconv.FormatInt(s.end, 10)))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// token goes into every form of the session's pages.
func (s session) token() string { return s.mac("form") }

// owns reports whether a form comes from a page of the session.
func (s session) owns(token string) bool {
	return s.key != "" && hmac.Equal([]byte(token), []byte(s.token()))
}

func (h *Handler) login(ctx context.Context, r request) reply {
	keys, err := h.config.Keys(ctx)
	if err != nil {
		return h.failure(ctx, r, err)
	}
	key := matching(keys, r.form.Get("key"))
	if key == "" {
		return reply{status: http.StatusUnauthorized, page: loginMarkup(true)}
	}
	s := session{key: key, end: h.config.Now().Add(sessionLife).Unix()}
	cookie := h.cookie(strconv.FormatInt(s.end, 10)+"."+s.mac("session"), sessionLife)
	return reply{status: http.StatusSeeOther, location: Path, cookie: cookie}
}

// cookie is the session's; life 0 deletes it.
func (h *Handler) cookie(value string, life time.Duration) string {
	c := http.Cookie{
		Name: cookieName, Value: value, Path: Path, MaxAge: int(life.Seconds()), HttpOnly: true,
		Secure: !h.config.Insecure, SameSite: http.SameSiteStrictMode,
	}
	if life == 0 {
		c.MaxAge = -1
	}
	return c.String()
}
