// Package jupyter serves clients of a Jupyter server: GET /api answers, and the kernels follow.
package jupyter

import (
	"net/http"

	"glasshouse/service/compat"
)

// New returns the handler of the API.
func New(c compat.Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		compat.WriteJSON(w, http.StatusOK, map[string]string{"version": c.Version})
	})
	return mux
}
