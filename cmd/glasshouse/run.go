package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"glasshouse/sandbox"
)

func newRunCommand() *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use: "run [flags] FILE.py", Short: "Run a file in a sandbox", Args: arguments(1, 1),
		Long: "Run a file in a sandbox, and print its output and the value of its last expression. Output and tables " +
			"appear as they come. --out writes pictures and the files of /session/artifacts.\n\n" +
			callsServiceOrStarts,
		Example: `  glasshouse run report.py
  glasshouse run --out results report.py
  echo '6 * 7' | glasshouse run -
  GLASSHOUSE_URL=https://glasshouse.example GLASSHOUSE_KEY=gh_... glasshouse run report.py`,
	}
	url := urlFlag(cmd)
	cmd.Flags().StringVar(&out, "out", "",
		"`FOLDER` for the pictures and files of the run; empty: they stay in history")
	return withSettings(cmd, func(ctx context.Context, s settings, args []string) error {
		name := args[0]
		code, err := readFile(name)
		if err != nil {
			return err
		}
		if name == "-" {
			name = "<stdin>"
		}
		return withServiceForCode(ctx, s, *url, string(code), func(c *client) error {
			return c.runFile(ctx, name, string(code), out)
		})
	})
}

// runFile runs the code of a file, prints what it prints, and writes its pictures and files to the folder out, unless
// that is empty.
func (c *client) runFile(ctx context.Context, name, code, out string) error {
	var folder *os.Root
	if out != "" {
		err := os.MkdirAll(out, 0o755)
		if err == nil {
			folder, err = os.OpenRoot(out) // no path of the run leads out of it
		}
		if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		defer folder.Close()
	}
	e, err := c.stream(ctx, code)
	if err != nil {
		return err
	}
	for name, n := range e.Truncated {
		fmt.Fprintf(os.Stderr, "glasshouse: %s is truncated: %d are missing\n", name, n)
	}
	if string(e.Result) != "null" && len(e.Result) > 0 {
		fmt.Println(formatResult(e.Result))
	}
	if folder != nil {
		err = c.saveOutputs(ctx, e, folder, out)
	} else if files := describeOutputs(e); files != "" {
		fmt.Fprintf(os.Stderr, "glasshouse: the run also made %s; --out FOLDER writes them, and execution %s "+
			"in history has them\n", files, e.ID)
	}
	if e.Exception != nil {
		fmt.Fprint(os.Stderr, e.Exception.TracebackText(name))
	}
	if e.Error != nil {
		return errors.Join(fmt.Errorf("%s: %s", e.Status, *e.Error), err)
	}
	return err
}

// cancelTimeout is the maximum time for cancelling the run of a command that was interrupted.
const cancelTimeout = 5 * time.Second

// stream runs code in a new sandbox, and prints its output and what it displays as they come. It cancels the run if ctx
// ends or the output cannot be printed.
func (c *client) stream(ctx context.Context, code string) (*sandbox.Execution, error) {
	body, err := c.send(ctx, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code}, "text/event-stream")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var started struct {
		ID string `json:"execution_id"`
	}
	e := &sandbox.Execution{}
	done := false
	err = readEvents(body, func(event string, data []byte) error {
		switch event {
		case "started":
			return json.Unmarshal(data, &started)
		case "stdout", "stderr":
			var chunk struct{ Text string }
			if err := json.Unmarshal(data, &chunk); err != nil {
				return err
			}
			out := os.Stdout
			if event == "stderr" {
				out = os.Stderr
			}
			_, err := out.WriteString(chunk.Text)
			return err
		case "output":
			var o sandbox.Output
			if err := json.Unmarshal(data, &o); err != nil {
				return err
			}
			if text := ""; o.Role == sandbox.RoleDisplay && json.Unmarshal(o.Data["text/plain"], &text) == nil {
				fmt.Println(strings.TrimRight(text, "\n"))
			}
		case "error":
			var problem struct{ Detail string }
			_ = json.Unmarshal(data, &problem)
			return errors.New(problem.Detail)
		case "done":
			done = true
			return json.Unmarshal(data, e)
		}
		return nil
	})
	if err == nil && !done {
		err = fmt.Errorf("the service ended the stream of execution %s before its end; history has what it recorded",
			started.ID)
	}
	if !done && started.ID != "" { // without a reader, the run would go on
		cancel, end := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer end()
		_ = c.call(cancel, "POST", "/executions/"+started.ID+"/cancel", nil, &struct{}{}) // unless the service is gone
	}
	return e, err
}

// readEvents calls handle with each server-sent event of a stream, until its end.
func readEvents(stream io.Reader, handle func(event string, data []byte) error) error {
	lines := bufio.NewReader(stream)
	event := ""
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = strings.TrimSpace(name)
		} else if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := handle(event, []byte(data)); err != nil {
				return err
			}
		}
	}
}

// formatResult returns a result as JSON, or its repr if JSON cannot represent it.
func formatResult(result json.RawMessage) string {
	var object struct{ Type, Repr string }
	if json.Unmarshal(result, &object) == nil && object.Type != "" && object.Repr != "" {
		return object.Repr
	}
	return string(result)
}

// picture returns the MIME type of an output's picture, or "" if it has none.
func picture(o sandbox.Output) string {
	kinds := slices.Collect(maps.Keys(o.Data))
	var references map[string]json.RawMessage
	_ = json.Unmarshal(o.Data[sandbox.ArtifactMIME], &references) // of large pictures
	kinds = slices.AppendSeq(kinds, maps.Keys(references))
	slices.Sort(kinds)
	for _, kind := range kinds {
		if strings.HasPrefix(kind, "image/") {
			return kind
		}
	}
	return ""
}

// describeOutputs lists the pictures and files of a run.
func describeOutputs(e *sandbox.Execution) string {
	var all []string
	for _, o := range e.Outputs {
		if kind := picture(o); kind != "" {
			all = append(all, "a picture ("+kind+")")
		}
	}
	for _, a := range e.Artifacts {
		all = append(all, a.Path)
	}
	return strings.Join(all, ", ")
}

// pictureEndings are the endings of files with pictures; others have the name of the type.
var pictureEndings = map[string]string{"image/svg+xml": "svg", "image/jpeg": "jpg"}

// saveOutputs writes the pictures of a run to a folder as figure-1.png and so on, and its files under their paths. It
// prints the path of each. The error names the files that could not be written.
func (c *client) saveOutputs(ctx context.Context, e *sandbox.Execution, folder *os.Root, name string) error {
	var problems []error
	save := func(file string, content io.ReadCloser, err error) {
		if err == nil {
			err = writeTo(folder, file, content)
			_ = content.Close()
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s is not written: %w", file, err))
			return
		}
		fmt.Fprintf(os.Stderr, "glasshouse: wrote %s\n", path.Join(name, file))
	}
	n := 0
	for _, o := range e.Outputs {
		kind := picture(o)
		if kind == "" {
			continue
		}
		n++
		ending := pictureEndings[kind]
		if ending == "" {
			ending = strings.TrimPrefix(kind, "image/")
		}
		content, err := c.openPart(ctx, o, kind)
		save(fmt.Sprintf("figure-%d.%s", n, ending), content, err)
	}
	for _, a := range e.Artifacts {
		content, err := c.send(ctx, "GET", "/artifacts/"+a.ID, nil, "*/*")
		save(a.Path, content, err)
	}
	return errors.Join(problems...)
}

// openPart returns the part of an output with a MIME type. It fetches a part that is too large for an answer.
func (c *client) openPart(ctx context.Context, o sandbox.Output, kind string) (io.ReadCloser, error) {
	if a, ok := o.Reference(kind); ok {
		return c.send(ctx, "GET", "/artifacts/"+a.ID, nil, "*/*")
	}
	text := ""
	if err := json.Unmarshal(o.Data[kind], &text); err != nil {
		return nil, err
	}
	if kind == "image/svg+xml" {
		return io.NopCloser(strings.NewReader(text)), nil
	}
	return io.NopCloser(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text))), nil
}

// writeTo writes a file in a folder, whose path may have folders of its own.
func writeTo(folder *os.Root, file string, content io.Reader) error {
	if err := folder.MkdirAll(path.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := folder.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
