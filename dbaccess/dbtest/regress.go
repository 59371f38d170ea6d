package dbtest

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// RegressStatement is a statement of PostgreSQL's regression files.
type RegressStatement struct {
	SQL    string
	Copied *string // data of a COPY FROM STDIN
}

// RegressFiles returns the names of PostgreSQL's regression files in their required order. dir is src/test/regress of
// PostgreSQL's source, which scripts/regress fetches.
func RegressFiles(t testing.TB, dir string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "parallel_schedule"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "test: "); ok {
			names = append(names, strings.Fields(list)...)
		}
	}
	return names
}

var copies = regexp.MustCompile(`(?is)^\s*(--[^\n]*\n\s*)*copy\b.*\bfrom\s+stdin\b`)

// RegressStatements splits a regression file roughly as psql does. A statement that is split wrongly does not run.
func RegressStatements(t testing.TB, dir, file string) (out []RegressStatement) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "sql", file+".sql"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // generated from a template by PostgreSQL's build
	} else if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var filename string
	var text strings.Builder
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, `\`) {
			if rest, ok := strings.CutPrefix(line, `\set filename :abs_srcdir `); ok {
				filename = "'" + dir + strings.Trim(rest, "'") + "'"
			}
			continue
		}
		text.WriteString(strings.ReplaceAll(line, ":'filename'", filename) + "\n")
		sql := strings.TrimSpace(text.String())
		whole := strings.HasSuffix(sql, ";") && strings.Count(sql, "$$")%2 == 0
		if before, _, ok := strings.Cut(line, `\g`); ok && strings.TrimSpace(before) != "" { // \gset, \gexec
			sql, whole = strings.TrimSpace(sql[:strings.LastIndex(sql, `\g`)]), true
		}
		if !whole {
			continue
		}
		st := RegressStatement{SQL: strings.TrimSuffix(sql, ";")}
		if copies.MatchString(sql) {
			var data strings.Builder
			for lines.Scan() && lines.Text() != `\.` {
				data.WriteString(lines.Text() + "\n")
			}
			all := data.String()
			st.Copied = &all
		}
		out = append(out, st)
		text.Reset()
	}
	return out
}
