package compat

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"strconv"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// maxJSONBytes is the largest JSON body of a request.
const maxJSONBytes = 4 << 20

// ReadJSON decodes the JSON body of a request, which may be empty, into v. Its errors are those of ReadBody;
// FaultMalformed is also a body that has another form.
func (c Config) ReadJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := c.ReadBody(w, r, maxJSONBytes)
	if err != nil || len(body) == 0 {
		return err
	}
	c.CPU.Compute(limit.UserOf(r.Context()), len(body), func() { err = sandbox.UnmarshalIntegers(body, v) })
	if err != nil {
		return sandbox.Errorf(sandbox.FaultMalformed, "the body must be JSON of this request: %s", err)
	}
	return nil
}

// ReadBody reads the body of a request of a user, of at most most bytes. It returns FaultTooLarge, FaultMalformed, and
// FaultLimit if too many requests with large bodies of the user arrive or wait.
func (c Config) ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, most)
	body, err := io.ReadAll(access.BodyReader(r.Context(), limited))
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

// WriteJSON answers with v as JSON. It returns nil, so that a handler can end with it.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // fails if the client has left
	return nil
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

// maxFormFiles bounds the files of a form: the answer has an entry for each.
const maxFormFiles = 1000

// EachFile calls each with the files of a form, and with their whole file names, which may be paths. Fields without a
// file name are skipped. A form without a file is FaultMalformed, one with more than maxFormFiles is FaultInvalid. A
// *sandbox.Error of the body's reader is returned as it is.
func EachFile(form *multipart.Reader, each func(name string, body io.Reader) error) error {
	for files := 0; ; {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) && files > 0 {
			return nil
		}
		if known, ok := errors.AsType[*sandbox.Error](err); ok {
			return known
		}
		if err != nil {
			return sandbox.Errorf(sandbox.FaultMalformed, "the body must be a form with files: %s", err)
		}
		_, parameters, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if parameters["filename"] == "" {
			continue
		}
		if files++; files > maxFormFiles {
			return sandbox.Errorf(sandbox.FaultInvalid, "a form may have %d files; send the others in another form",
				maxFormFiles)
		}
		if err := each(parameters["filename"], part); err != nil {
			return err
		}
	}
}
