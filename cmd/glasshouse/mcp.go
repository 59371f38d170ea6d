package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"glasshouse/service/mcpapi"
)

func newMCPCommand() *cobra.Command {
	var isStandalone bool
	cmd := &cobra.Command{
		Use: "mcp [flags]", Short: "Serve the Model Context Protocol on stdin and stdout", Args: arguments(0, 0),
		Long: "Serve the Model Context Protocol (MCP) on stdin and stdout, for a host that starts its " +
			"servers.\n\n" + callsService + " With --standalone it starts a service of its own. A service also " +
			"answers MCP over HTTP at /mcp.",
		Example: `  glasshouse mcp --standalone
  GLASSHOUSE_URL=https://glasshouse.example GLASSHOUSE_KEY=gh_... glasshouse mcp`,
	}
	url := urlFlag(cmd)
	cmd.Flags().BoolVar(&isStandalone, "standalone", false, "start a service in this process, on the data folder")
	return withSettings(cmd, func(ctx context.Context, s settings, _ []string) error {
		if isStandalone {
			return serveMCP(ctx, s)
		}
		c, err := serviceClient(s.server.dataDir, *url)
		if err != nil {
			return fmt.Errorf("%w; --standalone starts a service here", err)
		}
		return mcpapi.Bridge(ctx, os.Stdin, os.Stdout, c.address, c.key, version)
	})
}

// serveMCP serves MCP on stdin and stdout with a service that ends with the input.
func serveMCP(ctx context.Context, s settings) error {
	a, err := build(ctx, s, nil, func(step string) { fmt.Fprintf(os.Stderr, "glasshouse: %s\n", step) })
	if err != nil {
		return err
	}
	defer a.close(context.WithoutCancel(ctx), s)
	caller, err := a.access.Authenticate(ctx, a.adminKey)
	if err != nil {
		return err
	}
	return a.newMCP().ServeStream(ctx, os.Stdin, os.Stdout, caller)
}
