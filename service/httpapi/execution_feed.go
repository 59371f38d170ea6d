package httpapi

import (
	"context"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/run"
)

func (a *api) routeExecutionFeed(r *routes) {
	op := r.describe("GET", "/executions/events", "followExecutions", tagExecutions,
		"Follow the executions of the caller, or of all users for an admin, as events")
	op.Parameters = []*huma.Param{
		stringParam("query", "user_id", "Only executions of this user"),
		stringParam("header", "Last-Event-ID", "Resume after this event"),
	}
	op.Responses["200"] = &huma.Response{
		Description: "Events with ids: began and ended, with the summary of an execution; gap, if events are " +
			"missing: list the executions again",
		Content: map[string]*huma.MediaType{"text/event-stream": eventSchema(
			"A summary as JSON: " + jsonContent[sandbox.ExecutionSummary](r)["application/json"].Schema.Ref)},
	}
	r.handle(r.keyed, op, a.followExecutions)
}

func (a *api) followExecutions(g *gin.Context) {
	after := a.runs.FeedPosition()
	if given := g.GetHeader("Last-Event-ID"); given != "" {
		var err error
		if after, err = strconv.ParseInt(given, 10, 64); err != nil {
			a.fail(g, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "Last-Event-ID",
				Detail: "no event has this id; leave the header out to get the events from now on"})
			return
		}
	}
	client := g.Request.Context()
	stream := newEventStream(g)
	defer stream.close()
	if stream.text("retry: 1000") != nil || stream.flush() != nil {
		return
	}
	for {
		ctx, cancel := context.WithTimeout(client, heartbeatInterval)
		events, last, err := a.runs.NextFeedEvents(ctx, callerFrom(client), g.Query("user_id"), after)
		cancel()
		after = last
		switch {
		case access.LostKey(client) != nil: // first: later events are not for this client
			stream.problem(access.LostKey(client))
			return
		case err == nil:
			err = writeFeed(stream, events)
		case client.Err() != nil:
			return
		default:
			err = stream.text(": nothing new")
		}
		if err != nil || stream.flush() != nil {
			return
		}
	}
}

func writeFeed(stream *eventStream, events []run.FeedEvent) error {
	for _, e := range events {
		var data any = e.Execution
		if e.Name == run.FeedGap {
			data = message{"events are missing: list the executions again"}
		}
		if err := stream.event(strconv.FormatInt(e.ID, 10), e.Name, data); err != nil {
			return err
		}
	}
	return nil
}
