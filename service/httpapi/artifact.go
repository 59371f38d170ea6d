package httpapi

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service/records"
)

type artifactsInput struct {
	InSandbox
	Limit int    `query:"limit" minimum:"1" maximum:"10000" default:"1000"`
	After string `query:"after" doc:"Value of next in the previous page"`
}

type artifactList struct {
	SandboxID string             `json:"sandbox_id"`
	Artifacts []sandbox.Artifact `json:"artifacts"`
	Next      string             `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

type signArtifactInput struct {
	ID   string `path:"aid"`
	Body *struct {
		Seconds int `json:"expires_in,omitempty" minimum:"1" maximum:"604800" doc:"Seconds; by default an hour"`
	} `required:"false"`
}

func (a *api) routeArtifacts(r *routes) {
	route(a, r, r.describe("GET", "/sandbox/{id}/artifacts", "listArtifacts", tagArtifacts,
		"List the newest version of each file that a live or ended sandbox's executions produced"), a.listArtifacts)
	route(a, r, r.describe("POST", "/artifacts/{aid}/url", "createArtifactURL", tagArtifacts,
		"Create a URL of an artifact that needs no key until it expires", http.StatusGone), a.signArtifact)
	for method, id := range map[string]string{http.MethodGet: "getArtifact", http.MethodHead: "headArtifact"} {
		op := r.describe(method, "/artifacts/{aid}", id, tagArtifacts,
			"Download an artifact, with a key or by a signed URL",
			http.StatusForbidden, http.StatusGone)
		op.Security = []map[string][]string{{"key": {}}, {}}
		op.Parameters = []*huma.Param{
			stringParam("path", "aid", ""),
			stringParam(
				"query",
				"expires",
				"From a signed URL",
			), stringParam("query", "signature", "From a signed URL"),
		}
		r.describeDownload(&op)
		r.handle(r.signed, op, a.downloadArtifact)
	}
}

func (a *api) listArtifacts(ctx context.Context, caller sandbox.Key, in *artifactsInput) (*artifactList, error) {
	list, next, err := a.records.Artifacts(ctx, caller, in.ID, in.Limit, in.After)
	return &artifactList{in.ID, list, next}, err
}

func (a *api) signArtifact(ctx context.Context, caller sandbox.Key, in *signArtifactInput) (*records.SignedURL, error) {
	var lifetime time.Duration
	if in.Body != nil {
		lifetime = time.Duration(in.Body.Seconds) * time.Second
	}
	signed, err := a.records.SignArtifact(ctx, caller, in.ID, lifetime)
	signed.URL = infoFrom(ctx).prefix + signed.URL
	return &signed, err
}

// isSigned reports whether a request for an artifact uses a signed URL. Without both parts of the signature it needs a
// key.
func isSigned(g *gin.Context) bool { return g.Query("signature") != "" && g.Query("expires") != "" }

func (a *api) downloadArtifact(g *gin.Context) {
	var file *os.File
	var artifact sandbox.Artifact
	var err error
	ctx, id := g.Request.Context(), g.Param("aid")
	if isSigned(g) {
		file, artifact, err = a.records.OpenSigned(ctx, id, g.Query("expires"), g.Query("signature"))
	} else {
		file, artifact, err = a.records.OpenArtifact(ctx, callerFrom(ctx), id)
	}
	if err != nil {
		a.fail(g, err)
		return
	}
	defer file.Close()
	if isSigned(g) { // counts for the user whose artifact it is
		admitted, end, err := a.access.AdmitUser(ctx, artifact.User)
		if err != nil {
			a.fail(g, err)
			return
		}
		defer end()
		g.Request = g.Request.WithContext(admitted)
	}
	a.serveDownload(g, download{file, artifact.Path, artifact.MIME, artifact.SHA256, artifact.CreatedAt})
}
