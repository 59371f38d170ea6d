// Package compat has what the compatibility APIs below it share: their configuration, the authentication of their
// requests, and the form of their answers.
//
//	func New(c compat.Config) http.Handler {
//		mux := http.NewServeMux()
//		mux.Handle("GET /things", c.WithKey(secretOf, fail, things))
//		return mux
//	}
//
// An API translates the requests of existing clients into calls of package service, and holds no rules of its own.
// cmd/glasshouse lists the APIs, and serves each on a listener of its own or below a folder of the main listener.
package compat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service"
)

// Config configures an API.
type Config struct {
	Service *service.Service
	Log     logrus.FieldLogger
	Version string     // of the program
	CPU     *limit.CPU // is told whose requests arrive; nil: nobody asks
	Bodies  limit.Bodies
}

// Handler answers a request of a caller who is authenticated. The context of the request ends when the caller's key is
// revoked or expires; its cause is then FaultUnauthorized.
type Handler func(w http.ResponseWriter, r *http.Request, caller sandbox.Key)

// WithKey returns a handler that finds the caller by the secret that secretOf returns, counts the request against the
// key's limits, and calls next. For any error, and for a panic of next, it calls fail, which writes an answer in the
// form of the API. An empty secret is FaultUnauthorized.
func (c Config) WithKey(
	secretOf func(*http.Request) string, fail func(http.ResponseWriter, *http.Request, error), next Handler,
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				c.Log.WithField("panic", p).WithField("path", r.URL.Path).Error("a compatibility API panicked")
				fail(w, r, errors.New("panic"))
			}
		}()
		secret := secretOf(r)
		if secret == "" {
			fail(w, r, sandbox.Errorf(sandbox.FaultUnauthorized,
				"no API key; `glasshouse keys create` makes a key, and docs/clients.md says how to configure it"))
			return
		}
		caller, err := c.Service.Authenticate(r.Context(), secret)
		if err == nil {
			_, err = c.Service.Admit(caller)
		}
		if err != nil {
			fail(w, r, err)
			return
		}
		c.CPU.Seen(caller.User)
		ctx, stop := c.Service.WhileValid(limit.WithUser(r.Context(), caller.User), secret)
		defer stop()
		next(w, r.WithContext(ctx), caller)
	})
}

// ReadBody reads the body of a request of a user, of at most most bytes. It returns FaultTooLarge, FaultMalformed, and
// FaultLimit if too many large bodies of the user arrive.
func (c Config) ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, most)
	body, err := io.ReadAll(c.Bodies.Reader(r.Context(), limit.UserOf(r.Context()), limited,
		service.ErrLargeBodies))
	known, isKnown := errors.AsType[*sandbox.Error](err)
	_, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		return body, nil
	case isKnown:
		return nil, known
	case isTooLarge:
		return nil, sandbox.Errorf(sandbox.FaultTooLarge, "the body has more than %d bytes", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, sandbox.Errorf(sandbox.FaultMalformed, "the body stopped arriving; send the request again")
	}
	return nil, sandbox.Errorf(sandbox.FaultMalformed, "the body is incomplete; send the request again")
}

// Message returns the status and the text with which an API answers err, and sets the header Retry-After. The text of
// an internal error stays in the log.
func (c Config) Message(w http.ResponseWriter, r *http.Request, err error) (status int, text string) {
	known, ok := errors.AsType[*sandbox.Error](err)
	if !ok {
		if r.Context().Err() == nil {
			c.Log.WithError(err).WithField("path", r.URL.Path).Error("a request to a compatibility API failed")
		}
		return http.StatusInternalServerError, "the service failed; its log has the error"
	}
	if known.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(known.RetryAfter))
	}
	return StatusOf(known.Fault), known.Error()
}

// StatusOf returns the HTTP status for a fault.
func StatusOf(fault sandbox.Fault) int {
	switch fault {
	case sandbox.FaultMalformed:
		return http.StatusBadRequest
	case sandbox.FaultUnauthorized:
		return http.StatusUnauthorized
	case sandbox.FaultForbidden:
		return http.StatusForbidden
	case sandbox.FaultNotFound:
		return http.StatusNotFound
	case sandbox.FaultBusy, sandbox.FaultNotConfigured:
		return http.StatusConflict
	case sandbox.FaultGone:
		return http.StatusGone
	case sandbox.FaultTooLarge:
		return http.StatusRequestEntityTooLarge
	case sandbox.FaultInvalid, sandbox.FaultRefused:
		return http.StatusUnprocessableEntity
	case sandbox.FaultLimit:
		return http.StatusTooManyRequests
	case sandbox.FaultFull, sandbox.FaultUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// WriteJSON answers with v as JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // fails if the client has left
}

// WriteFile answers with the first size bytes of a file, for a client that saves it under name. If code cuts the file
// meanwhile, the connection breaks.
func WriteFile(w http.ResponseWriter, f io.Reader, size int64, name, mimeType string) {
	h := w.Header()
	h.Set("Content-Type", mimeType)
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = io.CopyN(w, f, size) // fails if the client has left, too
}

// Traceback returns an exception as Python prints it. It begins with "Traceback" also for a syntax error: clients
// recognise a failure by this word.
func Traceback(x *sandbox.Exception) string {
	var b strings.Builder
	if len(x.Traceback) > 0 || x.Line > 0 {
		b.WriteString("Traceback (most recent call last):\n")
	}
	for _, f := range x.Traceback {
		file := f.File
		if file == "" {
			file = "<string>"
		}
		fmt.Fprintf(&b, "  File %q, line %d, in %s\n", file, f.Line, f.Function)
		if f.Code != "" {
			fmt.Fprintf(&b, "    %s\n", f.Code)
		}
	}
	if len(x.Traceback) == 0 && x.Line > 0 {
		fmt.Fprintf(&b, "  File \"<string>\", line %d\n", x.Line)
	}
	return b.String() + x.Summary() + "\n"
}
