package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/kessai/kessai/internal/merchant"
)

// route is one method of one path.
type route struct {
	method string
	path   string        // template: a segment in braces is a parameter
	role   merchant.Role // who may use it; "" for anybody
	serve  func(ctx context.Context, c *call) (answer, error)
}

// routes is every route, joined from the files that serve them.
func (h *Handler) routes() []route {
	return slices.Concat(
		h.paymentRoutes(),
		h.refundRoutes(),
		h.checkoutRoutes(),
		h.stockRoutes(),
		h.orderRoutes(),
		h.notificationRoutes(),
		h.webhookRoutes(),
		h.merchantRoutes(),
		h.reconciliationRoutes(),
		h.eventRoutes(),
		h.healthRoutes(),
	)
}

// match finds the route of a request and fills in its parameters. When the path
// is known and the method is not, allowed lists the methods that are.
func (h *Handler) match(c *call) (found *route, allowed string) {
	var methods []string
	for i := range h.table {
		r := &h.table[i]
		params, ok := r.params(c.path)
		if !ok {
			continue
		}
		if r.takes(c.method) {
			c.route, c.params = r, params
			return r, ""
		}
		methods = append(methods, r.method)
		if r.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return nil, strings.Join(methods, ", ")
}

// openPath reports whether a path is one that needs no key.
func (h *Handler) openPath(path string) bool {
	return slices.ContainsFunc(h.table, func(r route) bool {
		_, ok := r.params(path)
		return ok && r.role == ""
	})
}

// takes reports whether the route serves the method. HEAD is GET without a body
// (RFC 9110 section 9.3.2).
func (r *route) takes(method string) bool {
	return r.method == method || r.method == http.MethodGet && method == http.MethodHead
}

// params compares a path with the template, segment by segment. API Gateway may
// have decoded the path already; a segment that is no valid encoding counts as it is.
func (r *route) params(path string) (map[string]string, bool) {
	want, got := strings.Split(r.path, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	params := map[string]string{}
	for i, segment := range want {
		if name, ok := parameter(segment); ok {
			value := got[i]
			if decoded, err := url.PathUnescape(value); err == nil {
				value = decoded
			}
			params[name] = value
			continue
		}
		if segment != got[i] {
			return nil, false
		}
	}
	return params, true
}

// fill is the route's path with its parameters.
func (r *route) fill(params map[string]string) string {
	segments := strings.Split(r.path, "/")
	for i, segment := range segments {
		if name, ok := parameter(segment); ok {
			segments[i] = url.PathEscape(params[name])
		}
	}
	return strings.Join(segments, "/")
}

func parameter(segment string) (name string, ok bool) {
	if len(segment) > 2 && segment[0] == '{' && segment[len(segment)-1] == '}' {
		return segment[1 : len(segment)-1], true
	}
	return "", false
}
