package httpapi

import (
	"context"
	"net/http"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/service/help"
)

type helpFunctions struct {
	Functions map[string][]help.Helper `json:"functions"`
	Modules   moduleRules              `json:"modules"`
	Limits    policy.Policy            `json:"limits"`
	sandbox.Isolation
}

type moduleRules struct {
	Allowed []string          `json:"allowed"`
	Blocked map[string]string `json:"blocked" doc:"Each blocked module, with what to use instead"`
	Calls   map[string]string `json:"blocked_calls"`
	Note    string            `json:"note"`
}

const moduleNote = "These rules give an agent early errors, not protection: the kernel enforces the isolation."

type helpExamples struct {
	Examples []help.Example `json:"examples"`
	Notes    []string       `json:"usage_notes"`
}

var usageNotes = []string{
	"Variables, functions and imports stay from one execution to the next in one sandbox.",
	"The value of the last expression is the result; __result__ = ... overrides it.",
	"db_query only reads. Pass values as :name parameters.",
	"Files in the working folder (/session with full isolation) stay while the sandbox lives. " +
		"open('name') uses that folder.",
	"Uploads are in /data and read-only. " +
		"Files that an execution leaves in the folder artifacts of the working folder are kept, each with a URL.",
}

type templateInput struct {
	InSandbox
	Body *struct {
		Type string `json:"processor_type,omitempty" doc:"data_processor, text_analyzer or database_connector"`
	} `required:"false"`
}

type processorTemplate struct {
	SandboxID    string    `json:"sandbox_id"`
	Type         string    `json:"processor_type"`
	Code         string    `json:"template_code"`
	Instructions []string  `json:"instructions"`
	Timestamp    time.Time `json:"timestamp"`
}

var templateInstructions = []string{
	"Execute it as it is, or replace the line \"# Add your transformation logic here\" with your own return.",
	"Pass {\"data\": ...} as the execution's context to process your own data.",
	"If code defines a processor and creates no instance, its process method is called with that data. " +
		"The result is what process returns.",
}

func (a *api) routeHelp(r *routes) {
	route(a, r, r.describe("GET", "/sandbox/{id}/help/functions", "getHelpFunctions", tagHelp,
		"Get the helper functions, allowed modules and limits of a sandbox", http.StatusGone), a.getHelpFunctions)
	route(a, r, r.describe("GET", "/sandbox/{id}/help/examples", "getHelpExamples", tagHelp,
		"Get examples that run unchanged on the demo data", http.StatusGone), a.getHelpExamples)
	route(a, r, r.describe("POST", "/sandbox/{id}/templates/processor", "createProcessorTemplate", tagHelp,
		"Get the code of a processor, to run or to change", http.StatusGone), a.createProcessorTemplate)
}

func (a *api) getHelpFunctions(ctx context.Context, caller sandbox.Key, in *InSandbox) (*helpFunctions, error) {
	rules, limits, err := a.live.Rules(ctx, caller, in.ID)
	modules := moduleRules{rules.Allowed, rules.Blocked, rules.Calls, moduleNote}
	return &helpFunctions{help.Helpers(), modules, limits, a.live.Supervisor.Isolation()}, err
}

func (a *api) getHelpExamples(ctx context.Context, caller sandbox.Key, in *InSandbox) (*helpExamples, error) {
	_, _, err := a.live.Rules(ctx, caller, in.ID)
	return &helpExamples{help.Examples(), usageNotes}, err
}

func (a *api) createProcessorTemplate(
	ctx context.Context, caller sandbox.Key, in *templateInput,
) (*processorTemplate, error) {
	kind := ""
	if in.Body != nil {
		kind = in.Body.Type
	}
	_, _, err := a.live.Rules(ctx, caller, in.ID)
	used, code := help.Template(kind)
	return &processorTemplate{in.ID, used, code, templateInstructions, time.Now().UTC()}, err
}
