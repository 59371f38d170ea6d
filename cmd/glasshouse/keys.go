package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

func newKeysCommand() *cobra.Command {
	return newGroup("keys", "Create, list and revoke keys of the running service",
		newKeysCreateCommand(),
		withService(&cobra.Command{
			Use: "list [flags]", Short: "List keys", Args: arguments(0, 0), Long: "List keys. " + callsService,
			Example: "  glasshouse keys list",
		}, listKeys),
		newKeysRevokeCommand())
}

func newKeysRevokeCommand() *cobra.Command {
	var keepMade bool
	cmd := &cobra.Command{
		Use: "revoke [flags] ID", Short: "Revoke a key, and all keys that were created with it", Args: arguments(1, 1),
		Long: "Revoke a key, and all keys that were created with it. " + callsService,
		Example: `  glasshouse keys revoke 7d1c0c9e
  glasshouse keys revoke --keep-made 7d1c0c9e`,
	}
	cmd.Flags().BoolVar(&keepMade, "keep-made", false, "keep the keys that were created with it")
	return withService(cmd, func(ctx context.Context, c *client, args []string) error {
		var out access.Revocation
		path := fmt.Sprintf("/keys/%s?keep_made=%t", url.PathEscape(args[0]), keepMade)
		if err := c.call(ctx, "DELETE", path, nil, &out); err != nil {
			return err
		}
		for _, id := range out.Revoked {
			fmt.Println("revoked", id)
		}
		for _, id := range out.Kept {
			fmt.Println("kept", id)
		}
		return nil
	})
}

func newKeysCreateCommand() *cobra.Command {
	var name, user, role string
	var databases, allowed, blocked []string
	var lifetime time.Duration
	var historyDays int
	cmd := &cobra.Command{
		Use: "create [flags]", Short: "Create a key and print its secret", Args: arguments(0, 0),
		Long: "Create a key and print its secret. " + callsService,
		Example: `  glasshouse keys create --name ci
  glasshouse keys create --name notebook --user anna --role developer --expires 720h
  glasshouse keys create --name sales-agent --databases sales
  glasshouse keys create --name reports --allowed-modules pandas,numpy,json
  glasshouse keys create --name hr-agent --history-days 30`,
	}
	cmd.Flags().StringVar(&name, "name", "", "`NAME` that says what the key is for; required")
	cmd.Flags().StringVar(&user, "user", "", "`USER` whose sandboxes and executions the key can see; empty: the name")
	cmd.Flags().StringVar(&role, "role", "agent", "`ROLE`: agent, developer or admin")
	cmd.Flags().
		DurationVar(&lifetime, "expires", 0, "`TIME` for which the key is valid, such as 720h; 0: until it is revoked")
	cmd.Flags().StringSliceVar(&databases, "databases", nil,
		"comma-separated `NAMES` of the databases that the key may use; empty: all")
	cmd.Flags().StringSliceVar(&allowed, "allowed-modules", nil, "comma-separated `MODULES` that code of the key "+
		"may import, of those that the service allows; empty: all of them")
	cmd.Flags().StringSliceVar(&blocked, "blocked-modules", nil,
		"comma-separated `MODULES` that code of the key may not import")
	cmd.Flags().IntVar(&historyDays, "history-days", 0,
		"`DAYS` after which history deletes the key's executions; 0: as those of all keys")
	_ = cmd.RegisterFlagCompletionFunc("role",
		cobra.FixedCompletions([]string{"agent", "developer", "admin"}, cobra.ShellCompDirectiveNoFileComp))
	return withService(cmd, func(ctx context.Context, c *client, _ []string) error {
		if name == "" {
			return errors.New("--name is required: it says what the key is for")
		}
		if lifetime < 0 {
			return fmt.Errorf("--expires is %s: it must be a time to come, such as 720h", lifetime)
		}
		if user == "" {
			user = name
		}
		body := map[string]any{"name": name, "user_id": user, "role": role}
		for field, list := range map[string][]string{
			"databases": databases, "allowed_modules": allowed, "blocked_modules": blocked,
		} {
			if len(list) > 0 {
				body[field] = list
			}
		}
		if historyDays != 0 {
			body["limits"] = sandbox.KeyLimits{HistoryDays: historyDays}
		}
		if lifetime > 0 {
			body["expires_at"] = time.Now().Add(lifetime).UTC()
		}
		var created struct {
			sandbox.Key
			Secret string `json:"key"`
		}
		if err := c.call(ctx, "POST", "/keys", body, &created); err != nil {
			return err
		}
		fmt.Println(created.Secret)
		fmt.Fprintf(os.Stderr, "key %s for user %s (%s); its secret is shown only now\n", created.ID, created.User,
			created.Role)
		return nil
	})
}

func listKeys(ctx context.Context, c *client, _ []string) error {
	var list struct{ Keys []sandbox.Key }
	if err := c.call(ctx, "GET", "/keys", nil, &list); err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "ID\tNAME\tUSER\tROLE\tCREATED\tCREATED WITH\tDATABASES\tSTATE")
	for _, k := range list.Keys {
		state := "valid"
		if k.RevokedAt != nil {
			state = "revoked"
		} else if k.ExpiresAt != nil {
			state = "until " + k.ExpiresAt.Format(time.RFC3339)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.User, k.Role,
			k.CreatedAt.Format(time.RFC3339), cmp.Or(k.CreatedWith, "-"),
			cmp.Or(strings.Join(k.Databases, ","), "all"), state)
	}
	return out.Flush()
}
