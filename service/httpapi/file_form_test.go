package httpapi_test

import (
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// multipartForm encodes files in order, and returns the body and its content type.
func multipartForm(t *testing.T, files ...[2]string) (body, kind string) {
	t.Helper()
	var text strings.Builder
	w := multipart.NewWriter(&text)
	for _, f := range files {
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data",
			map[string]string{"name": "files", "filename": f[0]})}})
		if err == nil {
			_, err = part.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	return text.String(), w.FormDataContentType()
}

// File names in a form are kept as they are; of two files with one name the last is kept. Names that differ in case or in
// Unicode normalization are different.
func TestUnusualFileNamesInForm(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	var files [][2]string
	want := map[string]string{}
	for _, name := range append(unusualNames(1000), "TABLE.csv", "Table.csv", "table.csv") {
		files = append(files, [2]string{name, "I am " + name})
		want[name] = "I am " + name
	}
	files = append(files, [2]string{"table.csv", "the last"})
	want["table.csv"] = "the last"
	body, kind := multipartForm(t, files...)
	a := c.do(t, "POST", "/sandbox/"+id+"/files", body, "Content-Type", kind)
	if a.status != http.StatusOK || len(fileNames(a)) != len(files) {
		t.Fatalf("got HTTP %d with %d files, want all: %.500s", a.status, len(fileNames(a)), a.text)
	}
	if list := fileNames(c.ok(t, "GET", "/sandbox/"+id+"/files", nil)); len(list) != len(want) {
		t.Errorf("got %d files in the list, want %d", len(list), len(want))
	}
	a = c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"context": map[string]any{"want": want},
		"code": "[n for n, text in want.items() if open('/data/' + n, encoding='utf-8', newline='').read() != text]"})
	if fmt.Sprint(a.get("result")) != "[]" {
		t.Errorf("in the sandbox: got wrong files %v (%v), want none", a.get("result"), a.get("error"))
	}
	body, kind = multipartForm(t, [2]string{"fine", "1"}, [2]string{"../bad", "2"}, [2]string{"never", "3"})
	wantProblem(t, c.do(t, "POST", "/sandbox/"+id+"/files", body, "Content-Type", kind), 422, "invalid-input",
		"file 2 of the form", "../bad")
	list := fileNames(c.ok(t, "GET", "/sandbox/"+id+"/files", nil))
	if !slices.Contains(list, "fine") || slices.Contains(list, "never") || slices.Contains(list, "bad") {
		t.Errorf("of a form with an invalid second file: got %d stored files, want the first", len(list)-len(want))
	}
}
