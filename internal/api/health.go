package api

import (
	"context"
	"net/http"
)

func (h *Handler) healthRoutes() []route {
	return []route{{http.MethodGet, "/healthz", "", h.health}}
}

// health says whether everything that serves requests is ready.
func (h *Handler) health(ctx context.Context, _ *call) (answer, error) {
	if h.Ready != nil {
		if err := h.Ready(ctx); err != nil {
			return answer{}, err
		}
	}
	return reply(http.StatusOK, struct {
		Status string `json:"status"`
	}{"ok"})
}
