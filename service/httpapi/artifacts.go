package httpapi

import (
	"context"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service"
)

type artifactList struct {
	SandboxID string             `json:"sandbox_id"`
	Artifacts []sandbox.Artifact `json:"artifacts"`
	Next      string             `json:"next,omitempty" doc:"There are more: ask for those after this one"`
}

type artifactsInput struct {
	InSandbox
	Limit int    `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
	After string `query:"after"`
}

func (a *api) artifacts(router *gin.Engine, at place) {
	route(a, at, "GET", "/sandbox/{id}/artifacts", "What a sandbox's executions have left, the newest version of each file; it answers for ended sandboxes, too", func(ctx context.Context, caller sandbox.Key, in *artifactsInput) (*artifactList, error) {
		list, next, err := a.service.Artifacts(ctx, caller, in.ID, in.Limit, in.After)
		return &artifactList{in.ID, list, next}, err
	})
	type signInput struct {
		ID   string `path:"aid"`
		Body *struct {
			Seconds int `json:"expires_in,omitempty" doc:"Seconds; an hour where it is left out, a week at most"`
		} `required:"false"`
	}
	route(a, at, "POST", "/artifacts/{aid}/url", "A URL of an artifact that needs no key until it expires", func(ctx context.Context, caller sandbox.Key, in *signInput) (*service.SignedURL, error) {
		var last time.Duration
		if in.Body != nil {
			last = time.Duration(max(-1, min(in.Body.Seconds, 1<<30))) * time.Second // beyond the most that is given, either way
		}
		signed, err := a.service.SignArtifact(ctx, caller, in.ID, last)
		signed.URL = at.prefix + signed.URL
		return &signed, err
	})
	router.GET(at.prefix+artifactRoute, a.artifact)
	router.HEAD(at.prefix+artifactRoute, a.artifact)
	text := &huma.Schema{Type: "string"}
	path := at.prefix + "/artifacts/{aid}"
	at.api.OpenAPI().AddOperation(&huma.Operation{
		Method: "GET", Path: path, OperationID: "GET" + path, Summary: "Download an artifact, with a key or by a signed URL", Security: []map[string][]string{{"key": {}}, {}},
		Parameters: []*huma.Param{{Name: "aid", In: "path", Required: true, Schema: text}, {Name: "expires", In: "query", Schema: text}, {Name: "signature", In: "query", Schema: text}},
		Responses: map[string]*huma.Response{"200": {Description: "The file; Range and If-None-Match are understood",
			Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}}}}},
	})
}

const artifactRoute = "/artifacts/:aid"

// signed says whether a request comes by a signed URL: it needs no key, and is judged
// where the artifact is opened.
func signed(g *gin.Context) bool {
	return (g.FullPath() == artifactRoute || g.FullPath() == "/api/v1"+artifactRoute) && g.Query("signature") != ""
}

func (a *api) artifact(g *gin.Context) {
	var file *os.File
	var found sandbox.Artifact
	var err error
	ctx, id := g.Request.Context(), g.Param("aid")
	if signed(g) {
		file, found, err = a.service.OpenSigned(ctx, id, g.Query("expires"), g.Query("signature"))
	} else {
		file, found, err = a.service.OpenArtifact(ctx, callerFrom(ctx), id)
	}
	if err != nil {
		a.problem(g, err)
		return
	}
	defer file.Close()
	send(g, content{file, found.Path, found.MIME, found.SHA256, found.CreatedAt})
}
