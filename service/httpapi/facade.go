package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/service"
)

// Facade returns the handler that clients of a local code-execution server talk to.
// They send no key, so it belongs on a loopback listener of its own, and it takes
// nothing that a page in a browser could send: no other origin, no other host's
// name, no content type but JSON.
func Facade(f *service.CompatService, log logrus.FieldLogger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				log.WithField("panic", p).Error("a request to the facade panicked")
				say(w, http.StatusInternalServerError, wrong("the service failed; its log says more"))
			}
		}()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case !local(r):
			say(w, http.StatusForbidden, wrong("only programs on this machine may ask, by its own name"))
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			say(w, http.StatusOK, map[string]string{"status": "ok"})
		case r.Method != http.MethodPost || strings.TrimRight(r.URL.Path, "/") != "/execute":
			say(w, http.StatusNotFound, wrong("POST /execute runs code; there is nothing else here"))
		default:
			execute(f, log, w, r)
		}
	})
}

// local says whether a request names this machine, and comes from no other origin.
func local(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		from, err := url.Parse(origin)
		return err == nil && from.Host == r.Host
	}
	return r.Header.Get("Sec-Fetch-Site") == "" || r.Header.Get("Sec-Fetch-Site") == "same-origin" || r.Header.Get("Sec-Fetch-Site") == "none"
}

func execute(f *service.CompatService, log logrus.FieldLogger, w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		say(w, http.StatusBadRequest, wrong("Request must be JSON"))
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		say(w, http.StatusRequestEntityTooLarge, wrong("The request is too large"))
		return
	}
	job, problem := readJob(raw)
	if problem != "" {
		say(w, http.StatusBadRequest, wrong(problem))
		return
	}
	out, err := f.Execute(r.Context(), job)
	if err == nil {
		say(w, http.StatusOK, out)
		return
	}
	p, retry := toProblem(err, "")
	if p.Status == http.StatusInternalServerError && !errors.Is(err, r.Context().Err()) {
		log.WithError(err).Error("a request to the facade failed")
	}
	if retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(retry))
	}
	say(w, p.Status, wrong(p.Detail))
}

// readJob reads a request; problem is what such a client is told is wrong with it.
func readJob(raw []byte) (job service.CompatJob, problem string) {
	var body map[string]json.RawMessage
	if json.Unmarshal(raw, &body) != nil || body == nil {
		return job, "Invalid JSON data"
	}
	for _, name := range []string{"generated_code", "timeout"} {
		if body[name] == nil {
			return job, "Missing required field: " + name
		}
	}
	if json.Unmarshal(body["generated_code"], &job.Code) != nil || string(body["generated_code"]) == "null" {
		return job, "Invalid field: generated_code must be a string"
	}
	var seconds float64
	if json.Unmarshal(body["timeout"], &seconds) != nil || !(seconds > 0) {
		return job, "Invalid field: timeout must be a number of seconds above 0"
	}
	job.Timeout = time.Duration(math.Min(seconds, 1e6) * float64(time.Second))
	language := "python"
	if given := body["language"]; given != nil && json.Unmarshal(given, &language) != nil {
		return job, "Invalid field: language must be a string"
	}
	switch strings.ToLower(language) {
	case "", "python", "python3", "py":
	default:
		return job, "Only python execution is supported"
	}
	for _, name := range []string{"max_output_chars", "max_output_characters"} {
		if given := body[name]; given != nil && (json.Unmarshal(given, &job.MaxChars) != nil || job.MaxChars < 1) {
			return job, "Invalid field: " + name + " must be a whole number above 0"
		}
	}
	return job, ""
}

func wrong(why string) service.CompatResult {
	return service.CompatResult{Status: "error", Stderr: why}
}

// say answers in JSON.
func say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client may have gone
}
