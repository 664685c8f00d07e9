package api

import (
	"context"
	"net/http"
	"time"

	"github.com/kessai/kessai/internal/merchant"
)

const pathMerchants = "/v1/merchants"

func (h *Handler) merchantRoutes() []route {
	return []route{
		{http.MethodPost, pathMerchants, merchant.RoleOperator, h.createMerchant},
		{http.MethodGet, pathMerchants + "/{id}/keys", merchant.RoleOperator, h.listKeys},
		{http.MethodPost, pathMerchants + "/{id}/keys", merchant.RoleOperator, h.rotateKey},
		{http.MethodDelete, pathMerchants + "/{id}/keys/{prefix}", merchant.RoleOperator, h.revokeKey},
	}
}

const (
	// defaultOverlap is how long older keys work after a rotation, in seconds: a
	// day is time enough to change a shop's configuration.
	defaultOverlap = 86_400
	// maxOverlap is the most, in seconds: a week. A key that leaked should not live longer.
	maxOverlap = 604_800
)

// merchantView is a merchant and its first key.
type merchantView struct {
	ID        string        `json:"id"`
	Object    string        `json:"object"`
	Name      string        `json:"name"`
	CreatedAt time.Time     `json:"created_at"`
	APIKey    issuedKeyView `json:"api_key"`
}

// keyView is a key without the key itself.
type keyView struct {
	Object    string     `json:"object"`
	Prefix    string     `json:"prefix"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// issuedKeyView is a key in the answer that makes it. Key is null in a repeat.
type issuedKeyView struct {
	keyView `json:",inline"`
	Key     *string `json:"key"`
}

func viewKey(k merchant.Key) keyView {
	v := keyView{Object: "api_key", Prefix: k.Prefix, CreatedAt: k.CreatedAt.UTC()}
	if !k.EndsAt.IsZero() {
		at := k.EndsAt.UTC()
		v.ExpiresAt = &at
	}
	return v
}

func viewIssued(i merchant.Issued) issuedKeyView {
	v := issuedKeyView{keyView: viewKey(i.Key)}
	if i.Secret != "" {
		v.Key = &i.Secret
	}
	return v
}

// newMerchant is the body of a new merchant.
type newMerchant struct {
	Name string `json:"name"`
}

func (h *Handler) createMerchant(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	r := newMerchant{Name: f.text("name", required, ruleMerchantName)}
	if err := f.done(); err != nil {
		return answer{}, err
	}
	request, err := c.merchantRequest(r)
	if err != nil {
		return answer{}, err
	}
	issued, err := h.Merchants.Create(ctx, request, r.Name)
	if err != nil {
		return answer{}, err
	}
	m := issued.Merchant
	a, err := reply(http.StatusCreated, merchantView{m.ID, "merchant", m.Name, m.CreatedAt.UTC(), viewIssued(issued)})
	if err != nil {
		return answer{}, err
	}
	return a.at(pathMerchants + "/" + m.ID + "/keys").replayed(issued.Replayed), nil
}

func (c *call) merchantRequest(body any) (merchant.Request, error) {
	print, err := fingerprint(body)
	return merchant.Request{Scope: c.scope(), Fingerprint: print}, err
}

func (h *Handler) listKeys(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	at, err := readPaging(q, scanLimit)
	if err != nil {
		return answer{}, err
	}
	keys, next, err := h.Merchants.Keys(ctx, c.params["id"], at.cursor, at.limit)
	if err != nil {
		return answer{}, err
	}
	return page(keys, next, viewKey)
}

// newKey is the body of a rotation.
type newKey struct {
	ExpiresOldIn int64 `json:"expires_old_in"`
}

func (h *Handler) rotateKey(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	r := newKey{ExpiresOldIn: defaultOverlap}
	if f.take("expires_old_in", optional) != nil {
		r.ExpiresOldIn = f.integer("expires_old_in", optional, 0, maxOverlap)
	}
	if err := f.done(); err != nil {
		return answer{}, err
	}
	request, err := c.merchantRequest(r)
	if err != nil {
		return answer{}, err
	}
	issued, err := h.Merchants.Rotate(ctx, request, c.params["id"], time.Duration(r.ExpiresOldIn)*time.Second)
	if err != nil {
		return answer{}, err
	}
	a, err := reply(http.StatusCreated, viewIssued(issued))
	if err != nil {
		return answer{}, err
	}
	return a.at(pathMerchants + "/" + issued.Merchant.ID + "/keys").replayed(issued.Replayed), nil
}

func (h *Handler) revokeKey(ctx context.Context, c *call) (answer, error) {
	if err := h.Merchants.Revoke(ctx, c.params["id"], c.params["prefix"]); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent, header: map[string]string{"Cache-Control": "no-store"}}, nil
}
