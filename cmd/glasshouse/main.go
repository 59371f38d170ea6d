// Command glasshouse runs Python that agents write, next to PostgreSQL.
//
// main.go finds the sub-command, config.go is the only reader of flags and
// environment, run.go builds and joins the parts; each sub-command has a file.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"glasshouse/sandbox/isolate"
)

// version is set when the binary is built (-ldflags "-X main.version=...").
var version = "dev"

const usage = `glasshouse runs Python that agents write, next to PostgreSQL, and shows everything that happened.

  glasshouse serve              start the service (serve --help lists every setting)
  glasshouse run FILE.py        run a file in a sandbox, from the terminal
  glasshouse debug FILE.py      step through a file, forward and back, from the terminal
  glasshouse keys create|list|revoke
  glasshouse env list|show|add|remove|create|update|delete
                                the environments that sandboxes choose from, and their packages
  glasshouse check code FILE.py what a sandbox would refuse of it; nothing runs
  glasshouse check sql FILE     say whether the read-only door would run a statement (- reads it from standard input)
  glasshouse prove              attack the database through the door and beside it; say what each layer stops
  glasshouse role-sql           print the SQL that makes a login which only reads
  glasshouse doctor             what this machine can do, how strong the wall is, and what would help
  glasshouse version
`

func main() {
	isolate.RunLauncher() // in the re-executed binary this never returns
	if err := isolate.Harden(os.Environ()); err != nil {
		fmt.Fprintln(os.Stderr, "glasshouse: this process keeps more privileges than it needs:", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	args := os.Args[1:]
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func(context.Context, []string) error{"serve": serve, "run": runFile, "debug": debugFile, "keys": keys, "env": env, "check": check, "prove": proveDoor, "role-sql": roleSQL, "doctor": doctor}
	command, ok := commands[args[0]]
	switch {
	case ok:
		if err := command(ctx, args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "glasshouse:", err)
			os.Exit(1)
		}
	case args[0] == "version", args[0] == "--version":
		fmt.Println("glasshouse", version)
	case args[0] == "help", args[0] == "--help", args[0] == "-h":
		fmt.Print(usage)
	default:
		fmt.Fprintf(os.Stderr, "glasshouse: there is no command %q\n\n%s", args[0], usage)
		os.Exit(2)
	}
}
