package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"glasshouse/sandbox"
)

// maxInline is how large one part of a rich output may be to stay in its execution, in
// bytes of JSON; what is larger becomes an artifact.
const maxInline = 256 << 10

// artifactMIME is the part of a rich output that stands for what became artifacts: by
// the MIME type that it had, the artifact.
const artifactMIME = "application/vnd.glasshouse.artifact+json"

// Show is handed a rich output as it is shown, and returns it as the execution has it
// from then on, in its stream, its answer and history: with artifacts, which can be
// read at once, in the place of large parts. A part that can't be kept stays in it.
func (d *desk) Show(ctx context.Context, out sandbox.Output) sandbox.Output {
	s, e := d.service, d.execution
	keep, release := s.holding()
	defer release()
	var large []sandbox.Artifact
	var err error
	for _, kind := range slices.Sorted(maps.Keys(out.Data)) {
		if len(out.Data[kind]) <= maxInline || kind == "text/plain" {
			continue
		}
		name := fmt.Sprintf("output-%d%s", len(e.Outputs)+1, sandbox.Extension(kind))
		if len(large) > 0 {
			name = fmt.Sprintf("output-%d-%d%s", len(e.Outputs)+1, len(large)+1, sandbox.Extension(kind))
		}
		a, failed := keep(name, strings.NewReader(content(kind, out.Data[kind])))
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		a.Path, a.MIME, a.Change = name, kind, sandbox.ChangeNew
		large = append(large, a)
	}
	hosts, failed := s.keepArtifacts(ctx, e, path.Join("shown", e.ID), large, recordTime)
	if hosts != nil {
		parts, moved := maps.Clone(out.Data), map[string]sandbox.Artifact{}
		for _, a := range large {
			delete(parts, a.MIME)
			moved[a.MIME] = a
		}
		parts[artifactMIME], _ = json.Marshal(moved)
		out.Data = parts
	}
	if err = errors.Join(err, failed); err != nil {
		s.Log.WithError(err).WithField("execution_id", e.ID).Error("a rich output could not be kept as an artifact")
	}
	return out
}

// content is what a part of a rich output says: text, the bytes that it has as base64,
// or else its JSON.
func content(kind string, part json.RawMessage) string {
	var text string
	if json.Unmarshal(part, &text) != nil {
		return string(part)
	}
	if binary, err := base64.StdEncoding.DecodeString(text); err == nil && !strings.HasPrefix(kind, "text/") {
		return string(binary)
	}
	return text
}
