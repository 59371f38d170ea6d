package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/sandbox"
)

// maxResourceBytes is the maximum size of an artifact that is read as a resource.
const maxResourceBytes = 16 << 20

// addResources adds the resource templates. Answers of tools never link to them: some clients make files of links.
func (s *Server) addResources() {
	for _, template := range []struct {
		uri, name, description, kind string
		read                         func(context.Context, sandbox.Key, string) (*mcp.ResourceContents, error)
	}{
		{"glasshouse://executions/{id}", "execution", "The whole record of an execution, as JSON", "application/json",
			s.readExecution},
		{"glasshouse://artifacts/{id}", "artifact", "A file that code left in /session/artifacts", "", s.readArtifact},
		{"glasshouse://schema/{table}{?database}", "schema", "The columns of a table of a database, as JSON",
			"application/json", s.readSchema},
	} {
		prefix, _, _ := strings.Cut(template.uri, "{")
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: template.uri, Name: template.name, Description: template.description, MIMEType: template.kind,
		}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			caller, err := callerOf(ctx, req.Extra)
			if err != nil {
				return nil, err
			}
			contents, err := template.read(ctx, caller, strings.TrimPrefix(req.Params.URI, prefix))
			if err != nil && sandbox.FaultOf(err) == sandbox.FaultNotFound {
				return nil, mcp.ResourceNotFoundError(req.Params.URI)
			}
			if err != nil {
				return nil, errors.New(s.errorText(template.name, err))
			}
			contents.URI = req.Params.URI
			return &mcp.ReadResourceResult{
				Cacheable: mcp.Cacheable{CacheScope: "private"},
				Contents:  []*mcp.ResourceContents{contents},
			}, nil
		})
	}
}

func (s *Server) readExecution(ctx context.Context, caller sandbox.Key, id string) (*mcp.ResourceContents, error) {
	e, err := s.records.Execution(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	return jsonContents(e)
}

func (s *Server) readArtifact(ctx context.Context, caller sandbox.Key, id string) (*mcp.ResourceContents, error) {
	f, a, err := s.records.OpenArtifact(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if a.Size > maxResourceBytes {
		return nil, sandbox.Errorf(
			sandbox.FaultTooLarge,
			"the artifact has %d bytes, and a resource at most %d; download %s",
			a.Size,
			maxResourceBytes,
			a.URL,
		)
	}
	data, err := io.ReadAll(f)
	return &mcp.ResourceContents{MIMEType: a.MIME, Blob: data}, err
}

func (s *Server) readSchema(ctx context.Context, caller sandbox.Key, name string) (*mcp.ResourceContents, error) {
	table, database := name, ""
	if at := strings.LastIndex(name, "?database="); at >= 0 {
		table, database = name[:at], name[at+len("?database="):]
	}
	tables, err := s.databases.Schema(ctx, caller, database, table)
	if err != nil {
		return nil, err
	}
	return jsonContents(tables[0])
}

func jsonContents(v any) (*mcp.ResourceContents, error) {
	text, err := json.Marshal(v)
	return &mcp.ResourceContents{MIMEType: "application/json", Text: string(text)}, err
}
