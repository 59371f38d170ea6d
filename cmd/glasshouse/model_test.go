package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestModelSettings(t *testing.T) {
	const key = "sk-secret"
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return path
	}
	private, open := file("key", "\n "+key+" \n", 0o600), file("open", key, 0o644)
	for _, c := range []struct {
		url, name, keyFile string
		wantError, warning string
	}{
		{},
		{url: "http://127.0.0.1:11434/v1", name: "m"},
		{url: "http://[::1]:11434/v1", name: "m"},
		{url: "http://localhost:11434/v1", name: "m", keyFile: private},
		{url: "https://api.example.com/v1", name: "m", keyFile: private},
		{url: "http://10.0.0.7/v1", name: "m", warning: "CLEAR TEXT"},
		{url: "https://api.example.com/v1", name: "m", keyFile: open, warning: "chmod 600"},
		{url: "http://127.0.0.1/v1", wantError: "--model-url needs --model-name"},
		{name: "m", wantError: "need --model-url"},
		{keyFile: private, wantError: "need --model-url"},
		{url: "127.0.0.1:11434", name: "m", wantError: "not an http or https URL"},
		{url: "ftp://host/v1", name: "m", wantError: "not an http or https URL"},
		{url: "https://user:" + key + "@host/v1", name: "m", wantError: "--model-url has credentials"},
		{url: "https://host/v1?key=" + key, name: "m", wantError: "has a query"},
		{url: "https://host/v1", name: "m", keyFile: filepath.Join(dir, "none"), wantError: "name a file"},
		{url: "https://host/v1", name: "m", keyFile: file("empty", " \n", 0o600), wantError: "is empty"},
		{url: "https://host/v1", name: "m", keyFile: file("two", key+"\n"+key, 0o600), wantError: "more than one line"},
	} {
		s := modelSettings{c.url, c.name, c.keyFile}
		m, warnings, err := s.model()
		text := strings.Join(warnings, "\n")
		if (err == nil) != (c.wantError == "") || err != nil && !strings.Contains(err.Error(), c.wantError) {
			t.Errorf("%+v: got the error %v, want %q", c, err, c.wantError)
		}
		if (text == "") != (c.warning == "") || !strings.Contains(text, c.warning) {
			t.Errorf("%+v: got the warnings %q, want %q", c, warnings, c.warning)
		}
		if err != nil && strings.Contains(err.Error(), key) || strings.Contains(text, key) {
			t.Errorf("%+v: %v, %q show the key", c, err, warnings)
		}
		if err == nil && c.url != "" && m.Key != map[bool]string{true: key}[c.keyFile != ""] {
			t.Errorf("%+v: got the key %q, want that of the file without white space", c, m.Key)
		}
		if err == nil && c.url == "" && m != nil {
			t.Errorf("%+v: got a model, want none", c)
		}
	}
}
