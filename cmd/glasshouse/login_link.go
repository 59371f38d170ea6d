package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newLoginLinkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login-link [flags]", Short: "Print a link that signs an admin in to the pages", Args: arguments(0, 0),
		Long: "Print a link that signs an admin in to the pages. It works once, for ten minutes, in any browser that " +
			"reaches the service; the sign-in ends after --oidc-session-age of the service. " + callsService,
		Example: `  glasshouse login-link
  sudo glasshouse login-link --data-dir /var/lib/glasshouse
  docker compose -f deploy/compose.yaml exec glasshouse glasshouse login-link
  GLASSHOUSE_URL=https://glasshouse.example GLASSHOUSE_KEY=gh_... glasshouse login-link`,
	}
	return withService(cmd, func(ctx context.Context, c *client, _ []string) error {
		var link struct {
			URL       string    `json:"url"`
			ExpiresAt time.Time `json:"expires_at"`
		}
		if err := c.call(ctx, "POST", "/login/links", nil, &link); err != nil {
			return err
		}
		if strings.HasPrefix(link.URL, "/") { // the service has no --public-url
			link.URL = c.address + link.URL
		}
		fmt.Println(link.URL)
		fmt.Fprintf(os.Stderr, "the link signs in once, until %s; the service forgets it when it stops\n",
			link.ExpiresAt.Local().Format(time.RFC3339))
		return nil
	})
}
