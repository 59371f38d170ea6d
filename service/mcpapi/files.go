package mcpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/sandbox"
)

type filesInput struct {
	Session string  `json:"session_id"`
	Action  string  `json:"action"`
	Path    string  `json:"path"`
	Text    *string `json:"text"`
	Base64  *string `json:"base64"`
}

// sessionFiles lists, reads, writes or deletes files of a session. Code reads the uploads in /data; the artifacts are
// what code left in /session/artifacts.
func (s *Server) sessionFiles(
	ctx context.Context, caller sandbox.Key, _ *mcp.CallToolRequest, in filesInput,
) (*mcp.CallToolResult, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(in.Path, "/data/"), "/session/artifacts/")
	if in.Action != "list" && name == "" {
		return nil, sandbox.Errorf(
			sandbox.FaultInvalid,
			"path: action=%s needs the path of a file; action=list shows them",
			in.Action,
		)
	}
	switch in.Action {
	case "read":
		return s.readFile(ctx, caller, in.Session, name)
	case "write":
		body, err := in.body()
		if err != nil {
			return nil, err
		}
		f, err := s.live.Upload(ctx, caller, in.Session, name, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		return textResult(fmt.Sprintf("wrote %d bytes; code reads /data/%s", f.Size, f.Path)), nil
	case "delete":
		if err := s.live.RemoveFile(ctx, caller, in.Session, name); err != nil {
			return nil, err
		}
		return textResult("deleted /data/" + name), nil
	}
	files, err := s.live.Files(ctx, caller, in.Session)
	if err != nil {
		return nil, err
	}
	artifacts, _, err := s.records.Artifacts(ctx, caller, in.Session, maxListedArtifacts, "")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, f := range files.Files {
		lines = append(lines, fmt.Sprintf("/data/%s %d bytes %s", f.Path, f.Size, f.MIME))
	}
	for _, a := range artifacts {
		lines = append(
			lines,
			fmt.Sprintf("/session/artifacts/%s %d bytes %s artifact_id=%s", a.Path, a.Size, a.MIME, a.ID),
		)
	}
	if len(lines) == 0 {
		lines = []string{"no files; action=write puts one into /data"}
	}
	return textResult(strings.Join(lines, "\n")), nil
}

// body returns the content to write.
func (in filesInput) body() ([]byte, error) {
	if (in.Text == nil) == (in.Base64 == nil) {
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "text: give the content as text or as base64, not both")
	}
	if in.Text != nil {
		return []byte(*in.Text), nil
	}
	body, err := base64.StdEncoding.DecodeString(*in.Base64)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "base64: %v; give all bytes in the alphabet A-Z a-z 0-9 + / "+
			"with = at the end, or plain text as text", err)
	}
	return body, nil
}

// maxListedArtifacts is the number of artifacts, the newest first, that a list of files has.
const maxListedArtifacts = 100

// readFile answers with an upload, or with the newest artifact of that path: text as text, an image as an image, and
// other content in base64 up to the size of an answer.
func (s *Server) readFile(ctx context.Context, caller sandbox.Key, session, name string) (*mcp.CallToolResult, error) {
	f, file, err := s.live.OpenFile(ctx, caller, session, name)
	size, kind := file.Size, file.MIME
	if err != nil && sandbox.FaultOf(err) != sandbox.FaultNotFound {
		return nil, err
	}
	if err != nil {
		artifact, found, listErr := s.findArtifact(ctx, caller, session, name)
		if listErr != nil || !found {
			return nil, err
		}
		if f, artifact, err = s.records.OpenArtifact(ctx, caller, artifact.ID); err != nil {
			return nil, err
		}
		size, kind = artifact.Size, artifact.MIME
	}
	defer f.Close()
	return s.fileResult(caller, f, name, kind, size)
}

func (s *Server) findArtifact(
	ctx context.Context, caller sandbox.Key, session, name string,
) (artifact sandbox.Artifact, found bool, err error) {
	list, _, err := s.records.Artifacts(ctx, caller, session, maxListedArtifacts, "")
	for _, a := range list {
		if a.Path == name {
			return a, true, nil
		}
	}
	return artifact, false, err
}

func (s *Server) fileResult(
	caller sandbox.Key, f *os.File, name, kind string, size int64,
) (*mcp.CallToolResult, error) {
	if kind == "image/png" && size <= maxImageFileBytes {
		data, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		if small := s.fitPNG(caller, data); small != nil {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: small, MIMEType: kind}}}, nil
		}
		if _, err = f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(maxTextChars)*utf8.UTFMax))
	if err != nil {
		return nil, err
	}
	if utf8.Valid(data) || int64(len(data)) < size && utf8.Valid(data[:len(data)-utf8.UTFMax]) {
		runes := []rune(strings.ToValidUTF8(string(data), ""))
		text := string(runes[:min(len(runes), maxTextChars)])
		if int64(len(text)) < size {
			text += fmt.Sprintf("\n[%d of %d bytes shown; run_python can read the rest of %s]", len(text), size, name)
		}
		return textResult(text), nil
	}
	text := base64.StdEncoding.EncodeToString(data[:min(len(data), maxTextChars*3/4)])
	return textResult(fmt.Sprintf("%s, %d bytes, base64 of the first %d:\n%s", kind, size, len(text)*3/4, text)), nil
}
