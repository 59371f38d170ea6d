// Package help has the texts and programs that help those who write code for a sandbox: the helpers that code can use,
// examples, templates, and the programs of the service that analyze tables and code.
package help

import (
	"embed"
	"encoding/json"
	"io/fs"
	"strings"
	"sync"
)

//go:embed *.py helpers.json examples
var files embed.FS

// File returns the text of a file of this folder, or "" if there is none.
func File(name string) string {
	body, err := files.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(body)
}

// Example is a titled program that runs without a change.
type Example struct {
	Title string `json:"title"`
	Code  string `json:"code"`
}

// Examples returns the examples of the folder examples, in the order of their file names. The tests run every one.
func Examples() []Example {
	names, _ := fs.Glob(files, "examples/*.py")
	var out []Example
	for _, name := range names {
		title, code, _ := strings.Cut(File(name), "\n")
		out = append(out, Example{Title: strings.TrimPrefix(title, "# "), Code: code})
	}
	return out
}

// Helper is a name that code in a sandbox can use without an import.
type Helper struct {
	Name        string `json:"name"`
	Signature   string `json:"signature"`
	Description string `json:"description"`
	Awaitable   bool   `json:"awaitable"`
}

//go:generate python3 ../../sandbox/python/guest/helpers.py helpers.json ../../docs/helpers.md

var helpers = sync.OnceValue(func() (groups map[string][]Helper) {
	if err := json.Unmarshal([]byte(File("helpers.json")), &groups); err != nil {
		panic(err) // the file is embedded, and a test reads it
	}
	return groups
})

// Helpers returns the helpers by group. The registry in sandbox/python/guest declares them.
func Helpers() map[string][]Helper { return helpers() }

// Template returns the code of a processor template and its kind. An unknown kind falls back to data_processor.
func Template(kind string) (used, code string) {
	if code := File("template_" + kind + ".py"); code != "" && !strings.ContainsAny(kind, "/.") {
		return kind, code
	}
	return "data_processor", File("template_data_processor.py")
}
