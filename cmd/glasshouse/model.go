package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"glasshouse/service/chat"
)

// modelSettings are the settings of the language model that answers in the chat.
type modelSettings struct {
	url     string
	name    string
	keyFile string
}

func (s *modelSettings) register(f *pflag.FlagSet) {
	f.StringVar(
		&s.url,
		"model-url",
		"",
		"base `URL` of an OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1; conversations, results "+
			"and rows of the database are sent there; empty: no chat",
	)
	f.StringVar(&s.name, "model-name", "", "`NAME` of the model at --model-url, such as qwen3:8b")
	f.StringVar(&s.keyFile, "model-key-file", "",
		"`FILE` with the key of the endpoint at --model-url; empty: no key is sent")
}

// model returns the model, nil without --model-url, and what the operator should know about it. No error and no warning
// has the key.
func (s *modelSettings) model() (m *chat.Model, warnings []string, err error) {
	if s.url == "" {
		if s.name != "" || s.keyFile != "" {
			return nil, nil, errors.New("--model-name and --model-key-file need --model-url: set it, or leave them out")
		}
		return nil, nil, nil
	}
	if s.name == "" {
		return nil, nil, errors.New("--model-url needs --model-name: name a model of that endpoint, such as qwen3:8b")
	}
	m = &chat.Model{URL: s.url, Name: s.name}
	if warnings, err = checkModelURL(s.url); err != nil || s.keyFile == "" {
		return m, warnings, err
	}
	info, err := os.Stat(s.keyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("--model-key-file: %w; name a file that the service can read", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		warnings = append(warnings, fmt.Sprintf("every user of this machine may use the key in --model-key-file %s "+
			"(mode %#o): run chmod 600 on it", s.keyFile, info.Mode().Perm()))
	}
	key, err := os.ReadFile(s.keyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("--model-key-file: %w; name a file that the service can read", err)
	}
	m.Key = strings.TrimSpace(string(key))
	switch {
	case m.Key == "":
		return nil, nil, fmt.Errorf("--model-key-file %s is empty: write the key of the endpoint into it, or leave "+
			"the setting out if the endpoint needs none", s.keyFile)
	case strings.ContainsFunc(m.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, nil, fmt.Errorf("--model-key-file %s has more than one line, or characters that no key has: write "+
			"only the key into it", s.keyFile)
	}
	return m, warnings, nil
}

// checkModelURL returns an error for a text that is not the base URL of an endpoint. The error does not repeat the URL,
// which may have a password.
func checkModelURL(text string) (warnings []string, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return nil, errors.New("--model-url is not an http or https URL: expected one such as " +
			"http://127.0.0.1:11434/v1")
	case u.User != nil:
		return nil, errors.New("--model-url has credentials, which would appear in logs: put the key of the endpoint " +
			"into a file and name it with --model-key-file")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("--model-url has a query or a fragment: give the base URL only, such as " +
			"https://api.example.com/v1")
	}
	if u.Scheme == "http" && !isLoopback(net.JoinHostPort(u.Hostname(), "0")) {
		warnings = append(warnings, fmt.Sprintf("--model-url sends conversations, rows of the database and the key "+
			"to %s in CLEAR TEXT: use https, or an endpoint on this machine", u.Host))
	}
	return warnings, nil
}
