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

// multipartForm is a multipart form of files, in an order, and its content type.
func multipartForm(t *testing.T, files ...[2]string) (body, kind string) {
	t.Helper()
	var text strings.Builder
	w := multipart.NewWriter(&text)
	for _, f := range files {
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": "files", "filename": f[0]})}})
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

// Names come through a form as they come through an address; of one that is there
// twice the last is kept, and another case or another way to write é is another name.
func TestUnusualFileNamesInForm(t *testing.T) {
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
		t.Fatalf("HTTP %d, %d files: %.500s", a.status, len(fileNames(a)), a.text)
	}
	if list := fileNames(c.ok(t, "GET", "/sandbox/"+id+"/files", nil)); len(list) != len(want) {
		t.Errorf("%d files are listed, not %d", len(list), len(want))
	}
	a = c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"context": map[string]any{"want": want}, "code": "[n for n, text in want.items() if open('/data/' + n, encoding='utf-8', newline='').read() != text]"})
	if fmt.Sprint(a.get("result")) != "[]" {
		t.Errorf("inside: %v %v", a.get("result"), a.get("error"))
	}
	body, kind = multipartForm(t, [2]string{"fine", "1"}, [2]string{"../bad", "2"}, [2]string{"never", "3"})
	wantProblem(t, c.do(t, "POST", "/sandbox/"+id+"/files", body, "Content-Type", kind), 422, "invalid-input", "file 2 of the form", "../bad")
	list := fileNames(c.ok(t, "GET", "/sandbox/"+id+"/files", nil))
	if !slices.Contains(list, "fine") || slices.Contains(list, "never") || slices.Contains(list, "bad") {
		t.Errorf("of a form that was refused in the middle %d are there", len(list)-len(want))
	}
}
