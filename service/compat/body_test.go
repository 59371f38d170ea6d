package compat_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"glasshouse/service/compat"
)

// A browser must not take an answer in JSON for a page.
func TestJSONIsNotSniffed(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := compat.WriteJSON(w, http.StatusOK, "<script>"); err != nil {
		t.Fatal(err)
	}
	if h := w.Header(); h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Type") != "application/json" {
		t.Errorf("got the headers %v, want JSON that is not sniffed", h)
	}
}
