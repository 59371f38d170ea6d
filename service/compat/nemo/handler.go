package nemo

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/service"
	"glasshouse/service/compat"
)

// maxBodyBytes is the largest body of a request.
const maxBodyBytes = 4 << 20

// Server answers the requests of the clients. It is an http.Handler.
type Server struct {
	Service        *service.Service
	Open           service.OpenSession // opens a session in the folder that all requests share
	MaxOutputChars int                 // default maximum of stdout and of stderr, each
	MemoryMB       int                 // of each request; 0: the default of a sandbox
	MaxSeconds     int                 // longest timeout of a request; 0: that of the other compatibility APIs
	LogRequests    bool                // write each request to the log
	Bodies         limit.Bodies
	Log            logrus.FieldLogger
}

// ServeHTTP answers POST /execute, and any GET with the server's health.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.WithField("panic", p).Error("a request to the compat API panicked")
			writeError(w, http.StatusInternalServerError, "the service failed; its log has the error")
		}
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case !isLocal(r):
		writeError(w, http.StatusForbidden, "only programs on this machine may send requests, to a loopback address")
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		compat.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	case r.Method != http.MethodPost || path.Base(path.Clean(r.URL.Path)) != "execute":
		writeError(w, http.StatusNotFound, "unknown route; POST /execute runs code")
	default:
		s.execute(w, r)
	}
}

// isLocal reports whether the Host of a request is this machine and its Origin, if any, is the same.
func isLocal(r *http.Request) bool {
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
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

func (s *Server) execute(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		writeError(w, http.StatusBadRequest, "Request must be JSON")
		return
	}
	r = r.WithContext(limit.WithUser(r.Context(), user))
	config := compat.Config{Log: s.Log, Bodies: s.Bodies}
	body, err := config.ReadBody(w, r, maxBodyBytes)
	if err != nil {
		status, text := config.Message(w, r, err)
		writeError(w, status, text)
		return
	}
	began := time.Now()
	in, problem := parseRequest(body)
	out, status := answer{Status: "error", Stderr: problem}, http.StatusBadRequest
	if problem == "" {
		if out, err = s.run(r.Context(), in); err == nil {
			status = http.StatusOK
		} else {
			status, problem = config.Message(w, r, err)
			out = answer{Status: "error", Stderr: problem}
		}
	}
	if s.LogRequests {
		s.Log.WithFields(logrus.Fields{
			"http_status": status, "process_status": out.Status, "seconds": time.Since(began).Seconds(),
			"timeout": in.timeout.Seconds(), "code": in.code, "stdout": out.Stdout, "stderr": out.Stderr,
		}).Info("a request to the compat API nemo")
	}
	if in.isPiston {
		writePiston(w, status, out, problem)
	} else {
		compat.WriteJSON(w, status, out)
	}
}

// parseRequest parses a body. problem is the error message for the client, or "".
func parseRequest(raw []byte) (in request, problem string) {
	var body map[string]json.RawMessage
	if !utf8.Valid(raw) || json.Unmarshal(raw, &body) != nil || body == nil {
		return in, "Invalid JSON data"
	}
	repeated := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true)).SkipValue()
	var syntactic *jsontext.SyntacticError
	if errors.Is(repeated, jsontext.ErrDuplicateName) && errors.As(repeated, &syntactic) {
		return in, "Field given twice: " + strings.TrimPrefix(string(syntactic.JSONPointer), "/")
	}
	if isPiston(body) {
		return parsePiston(raw)
	}
	for _, name := range []string{"generated_code", "timeout"} {
		if body[name] == nil {
			return in, "Missing required field: " + name
		}
	}
	if json.Unmarshal(body["generated_code"], &in.code) != nil || string(body["generated_code"]) == "null" {
		return in, "Invalid field: generated_code must be a string"
	}
	var seconds float64
	if json.Unmarshal(body["timeout"], &seconds) != nil || !(seconds > 0) {
		return in, "Invalid field: timeout must be a number of seconds above 0"
	}
	in.timeout = max(time.Duration(math.Min(seconds, maxTimeout.Seconds())*float64(time.Second)), 1)
	language := "python"
	if given := body["language"]; given != nil && json.Unmarshal(given, &language) != nil {
		return in, "Invalid field: language must be a string"
	}
	if !isPython(language) {
		return in, "Only python execution is supported"
	}
	for _, name := range []string{"max_output_chars", "max_output_characters"} {
		if given := body[name]; given != nil &&
			(json.Unmarshal(given, &in.maxOutputChars) != nil || in.maxOutputChars < 1) {
			return in, "Invalid field: " + name + " must be a whole number above 0"
		}
	}
	return in, ""
}

func writeError(w http.ResponseWriter, status int, message string) {
	compat.WriteJSON(w, status, answer{Status: "error", Stderr: message})
}
