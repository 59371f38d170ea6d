package nemo

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/live"
)

// maxBodyBytes is the largest body of a request.
const maxBodyBytes = 4 << 20

// Server answers the requests of the clients. It is an http.Handler.
type Server struct {
	compat.Config
	Open           live.OpenSession // opens a session in the folder that all requests share
	MaxOutputChars int              // default maximum of stdout and of stderr, each
	MemoryMB       int              // of each request; 0: the default of a sandbox
	LogRequests    bool             // write each request to the log
}

// ServeHTTP answers POST /execute, and any GET with the server's health.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.Recover(s.fail, s.serve).ServeHTTP(w, r)
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := s.Message(w, r, err)
	_ = compat.WriteJSON(w, status, answer{Status: "error", Stderr: text})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	switch {
	case !compat.IsLocalHost(r.Host) || !compat.IsSameOrigin(r):
		return sandbox.Errorf(sandbox.FaultForbidden,
			"only programs on this machine may send requests, to a loopback address")
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return compat.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	case r.Method != http.MethodPost || path.Base(path.Clean(r.URL.Path)) != "execute":
		return sandbox.Errorf(sandbox.FaultNotFound, "unknown route; POST /execute runs code")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return sandbox.Errorf(sandbox.FaultMalformed, "Request must be JSON")
	}
	ctx, end, err := s.Access.AdmitUser(r.Context(), sandbox.NeMoUser)
	if err != nil {
		return err
	}
	defer end()
	return s.execute(w, r.WithContext(ctx))
}

func (s *Server) execute(w http.ResponseWriter, r *http.Request) error {
	body, err := s.ReadBody(w, r, maxBodyBytes)
	if err != nil {
		return err
	}
	began := time.Now()
	var in request
	s.CPU.Compute(sandbox.NeMoUser, len(body), func() { in, err = parseRequest(body) })
	var out answer
	if err == nil {
		out, err = s.run(r.Context(), in)
	}
	status, problem := http.StatusOK, ""
	if err != nil {
		status, problem = s.Message(w, r, err)
		out = answer{Status: "error", Stderr: problem}
	}
	if s.LogRequests {
		s.Log.WithFields(logrus.Fields{
			"http_status": status, "process_status": out.Status, "seconds": time.Since(began).Seconds(),
			"timeout": in.timeout.Seconds(), "code": in.code, "stdout": out.Stdout, "stderr": out.Stderr,
		}).Info("a request to the compat API nemo")
	}
	if in.isPiston {
		return compat.WriteJSON(w, status, newPistonAnswer(out, problem))
	}
	return compat.WriteJSON(w, status, out)
}

// parseRequest parses a body. It returns FaultMalformed.
func parseRequest(raw []byte) (in request, err error) {
	var body map[string]json.RawMessage
	if !utf8.Valid(raw) || json.Unmarshal(raw, &body) != nil || body == nil {
		return in, malformed("Invalid JSON data")
	}
	repeated := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true)).SkipValue()
	var syntactic *jsontext.SyntacticError
	if errors.Is(repeated, jsontext.ErrDuplicateName) && errors.As(repeated, &syntactic) {
		return in, malformed("Field given twice: " + strings.TrimPrefix(string(syntactic.JSONPointer), "/"))
	}
	if isPiston(body) {
		return parsePiston(raw)
	}
	for _, name := range []string{"generated_code", "timeout"} {
		if body[name] == nil {
			return in, malformed("Missing required field: " + name)
		}
	}
	if json.Unmarshal(body["generated_code"], &in.code) != nil || string(body["generated_code"]) == "null" {
		return in, malformed("Invalid field: generated_code must be a string")
	}
	var seconds float64
	if json.Unmarshal(body["timeout"], &seconds) != nil || !(seconds > 0) {
		return in, malformed("Invalid field: timeout must be a number of seconds above 0")
	}
	in.timeout = max(time.Duration(math.Min(seconds, maxTimeout.Seconds())*float64(time.Second)), 1)
	language := "python"
	if given := body["language"]; given != nil && json.Unmarshal(given, &language) != nil {
		return in, malformed("Invalid field: language must be a string")
	}
	if !isPython(language) {
		return in, malformed("Only python execution is supported")
	}
	for _, name := range []string{"max_output_chars", "max_output_characters"} {
		if given := body[name]; given != nil &&
			(sandbox.UnmarshalIntegers(given, &in.maxOutputChars) != nil || in.maxOutputChars < 1) {
			return in, malformed("Invalid field: " + name + " must be a whole number above 0")
		}
	}
	return in, nil
}

func malformed(text string) error { return sandbox.Errorf(sandbox.FaultMalformed, "%s", text) }
