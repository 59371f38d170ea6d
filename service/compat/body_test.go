package compat_test

import (
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"glasshouse/sandbox"
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

// A form has at most 1000 files: a small request must not make the service write any number of them.
func TestFilesOfAFormAreLimited(t *testing.T) {
	t.Parallel()
	const part = "--B\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\n\r\n"
	for _, files := range []int{1000, 1001} {
		seen := 0
		form := multipart.NewReader(strings.NewReader(strings.Repeat(part, files)+"--B--\r\n"), "B")
		err := compat.EachFile(form, func(string, io.Reader) error { seen++; return nil })
		if isRefused := sandbox.FaultOf(err) == sandbox.FaultInvalid; isRefused != (files > 1000) || seen != 1000 {
			t.Errorf("a form with %d files: got %v after %d, want 1000 files and an error for more", files, err, seen)
		}
	}
}

func TestJSONOfARequestIsLimited(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int{4 << 20, 4<<20 + 1} {
		body := `"` + strings.Repeat("x", bytes-2) + `"`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		var got string
		err := compat.Config{}.ReadJSON(httptest.NewRecorder(), r, &got)
		if bytes <= 4<<20 && (err != nil || len(got) != bytes-2) ||
			bytes > 4<<20 && sandbox.FaultOf(err) != sandbox.FaultTooLarge {
			t.Errorf("a body of %d bytes: got %d bytes and %v, want at most 4 MiB", bytes, len(got), err)
		}
	}
}
