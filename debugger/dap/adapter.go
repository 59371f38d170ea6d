package dap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"unicode/utf8"

	godap "github.com/google/go-dap"

	"glasshouse/sandbox"
)

// Adapter is a debug adapter that an editor starts as a program. It carries messages between the editor and a service,
// and does on the editor's side what the service cannot: it reads the program's file, adds the key, and creates the
// sandbox of a launch that names none.
type Adapter struct {
	// Key is the token of launch and attach.
	Key string
	// OpenProgram opens the file of a launch. It returns an error for anything but a regular file.
	OpenProgram func(path string) (io.ReadCloser, error)
	// Dial connects to the service's DAP endpoint.
	Dial func(context.Context) (io.ReadWriteCloser, error)
	// CreateSandbox creates a sandbox with a policy as JSON, nil for the defaults, and returns its id.
	CreateSandbox func(ctx context.Context, policy json.RawMessage) (id string, err error)
	// DeleteSandbox deletes a sandbox that CreateSandbox created.
	DeleteSandbox func(ctx context.Context, id string) error
}

// maxLaunchBytes bounds the message of a launch. The service reads no more from a client that has not attached.
const maxLaunchBytes = maxBodyBytesBeforeAttach

// maxAddedBytes is more than the envelope of a launch, the id of a sandbox and a key have.
const maxAddedBytes = 1 << 10

// maxServiceBytes bounds a message of the service, which sends whole values and whole sources.
const maxServiceBytes = 64 << 20

// launchArguments are the arguments of launch and attach that the adapter reads. It sends the others on unchanged.
type launchArguments struct {
	Program string                     `json:"program"` // the file on the editor's side
	Replay  string                     `json:"replay"`  // an execution to run again, in place of program
	Sandbox string                     `json:"sandbox"` // empty: a fresh one, which ends with the session
	Config  json.RawMessage            `json:"config"`  // the policy of the fresh one
	Token   string                     `json:"token"`
	NoDebug bool                       `json:"noDebug"`
	Args    json.RawMessage            `json:"args"`
	Env     map[string]json.RawMessage `json:"env"`
	Cwd     string                     `json:"cwd"`
}

var (
	errTokenInConfiguration = errors.New(
		"token: a key does not belong in a configuration; remove it, and set GLASSHOUSE_KEY where the editor starts")
	errProgramOfReplay = errors.New("program: a replay runs the code of its execution; remove program or replay")

	errNoProgram  = errors.New("program is missing: name the Python file to debug, such as \"${file}\"")
	errArgs       = errors.New("args: code in a sandbox has no command line; set the values in the program")
	errEnv        = errors.New("env: a sandbox has its own environment variables; set the values in the program")
	errCwd        = errors.New("cwd: the program runs in /session of its sandbox; remove cwd")
	errConnection = errors.New("the connection to the service ended")
	errTooLong    = fmt.Errorf("the program is too long: with the other arguments it has at most %d KiB",
		maxLaunchBytes>>10)
)

// adapterSession is the connection of one editor.
type adapterSession struct {
	*Adapter
	out writer // to the editor

	initialize  []byte // the editor's request, which the service gets when a session begins
	remote      io.ReadWriteCloser
	fromService chan error // gets why the messages of the service ended
	launched    fields     // the arguments of launch
	noDebug     bool
	created     string // the sandbox that this session created
}

type fields = map[string]json.RawMessage

// Serve speaks with one editor until it disconnects, the service ends the connection, or ctx ends. It does not close
// the streams. A read of in may still be blocked when it returns.
func (a *Adapter) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &adapterSession{Adapter: a, out: writer{out: out}, fromService: make(chan error, 1)}
	bodies, readErr := make(chan []byte), make(chan error, 1)
	go func() {
		reader := bufio.NewReaderSize(in, readBufferBytes)
		for {
			body, err := readFrame(reader, func() int { return maxBodyBytes })
			if err != nil {
				readErr <- err
				return
			}
			select {
			case bodies <- body:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer s.close(context.WithoutCancel(ctx))
	for {
		select {
		case body := <-bodies:
			isOver, err := s.handle(ctx, body)
			if err != nil || isOver {
				return err
			}
		case err := <-readErr:
			if errors.Is(err, io.EOF) {
				return nil // the editor has gone
			}
			return err
		case err := <-s.fromService:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *adapterSession) close(ctx context.Context) {
	if s.remote != nil {
		_ = s.remote.Close()
	}
	if s.created != "" {
		_ = s.DeleteSandbox(ctx, s.created) // otherwise it ends by its idle time
	}
}

// handle answers a request of the editor or sends it on. It reports whether the session is over.
func (s *adapterSession) handle(ctx context.Context, body []byte) (isOver bool, err error) {
	var r message
	if !utf8.Valid(body) {
		return false, errors.New("decode a message of the editor: it is not UTF-8")
	}
	if err := sandbox.UnmarshalIntegers(body, &r); err != nil {
		return false, fmt.Errorf("decode a message of the editor: %w", err)
	}
	if r.Command == "launch" || r.Command == "attach" {
		if err := s.begin(ctx, r, body); err != nil {
			return false, s.out.respond(ctx, r, nil, err)
		}
		return false, nil
	}
	if s.remote == nil {
		switch r.Command {
		case "initialize":
			s.initialize = body
			return false, s.out.respond(ctx, r, capabilities(), nil)
		case "disconnect", "terminate", "cancel":
			return r.Command == "disconnect", s.out.respond(ctx, r, nil, nil)
		}
		return false, s.out.respond(ctx, r, nil, errNotLaunched)
	}
	switch {
	case r.Command == "restart":
		body, err = s.restart(ctx, r, body)
	case s.noDebug && (r.Command == "setBreakpoints" || r.Command == "setExceptionBreakpoints"):
		body, err = replaceArguments(body, func(arguments fields) error {
			for _, name := range []string{"breakpoints", "lines", "filters", "filterOptions", "exceptionOptions"} {
				if arguments[name] != nil {
					arguments[name] = json.RawMessage("[]")
				}
			}
			return nil
		})
	}
	if err != nil {
		return false, s.out.respond(ctx, r, nil, err)
	}
	return false, s.send(body)
}

var errNotLaunched = errors.New("nothing runs: send launch with program, or attach with session or execution")

// begin connects to the service and sends it the editor's initialize, and launch or attach with what it lacks.
func (s *adapterSession) begin(ctx context.Context, r message, body []byte) error {
	if s.remote != nil {
		return errAlreadyAttached
	}
	if s.created != "" { // by a launch that failed; its configuration may have been another one
		_ = s.DeleteSandbox(ctx, s.created)
		s.created = ""
	}
	body, err := replaceArguments(body, func(arguments fields) error {
		if r.Command == "launch" {
			s.launched = maps.Clone(arguments)
		}
		return s.complete(ctx, arguments, r.Command == "launch")
	})
	if err != nil {
		return err
	}
	if len(body) > maxLaunchBytes {
		return errTooLong
	}
	remote, err := s.Dial(ctx)
	if err != nil {
		return err
	}
	s.remote = remote
	go func() { s.fromService <- s.receive() }()
	if s.initialize == nil {
		s.initialize = []byte(
			`{"seq":0,"type":"request","command":"initialize","arguments":{"adapterID":"glasshouse"}}`,
		)
	}
	return errors.Join(s.send(s.initialize), s.send(body))
}

// restart returns a restart with the program's file as it is now.
func (s *adapterSession) restart(ctx context.Context, r message, body []byte) ([]byte, error) {
	if s.launched == nil {
		return nil, errCannotRestart
	}
	return replaceArguments(body, func(arguments fields) error {
		latest := s.launched
		if given := arguments["arguments"]; given != nil { // the configuration may have changed
			latest = nil
			if err := decode(given, &latest); err != nil {
				return err
			}
		}
		latest = maps.Clone(latest)
		if err := s.complete(ctx, latest, true); err != nil {
			return err
		}
		text, err := json.Marshal(latest)
		arguments["arguments"] = text
		return err
	})
}

// complete adds to the arguments of launch or attach what the service needs. It refuses what has no effect.
func (s *adapterSession) complete(ctx context.Context, arguments fields, isLaunch bool) error {
	var in launchArguments
	text, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	if err := decode(text, &in); err != nil {
		return err
	}
	set := func(name, value string) {
		text, _ := json.Marshal(value) // a string can always be encoded
		arguments[name] = text
	}
	switch {
	case in.Token != "":
		return errTokenInConfiguration
	case isLaunch && in.Replay != "" && in.Program != "":
		return errProgramOfReplay
	case isLaunch && in.Program == "" && in.Replay == "":
		return errNoProgram
	case isLaunch && hasElements(in.Args):
		return errArgs
	case isLaunch && len(in.Env) > 0:
		return errEnv
	case isLaunch && in.Cwd != "":
		return errCwd
	}
	if in.Program != "" {
		path, err := filepath.Abs(in.Program)
		if err != nil {
			return err
		}
		if arguments["path"] == nil {
			set("path", path)
		}
		if isLaunch {
			code, err := s.readProgram(path)
			if err != nil {
				return fmt.Errorf("program: %w", err)
			}
			set("code", code)
		}
		if text, err = json.Marshal(arguments); err != nil {
			return err
		}
		if len(text) > maxLaunchBytes-maxAddedBytes { // before a sandbox is created
			return errTooLong
		}
	}
	s.noDebug = isLaunch && in.NoDebug
	if isLaunch && in.Replay == "" { // a replay has a sandbox of its own
		id := in.Sandbox
		if id == "" {
			id = s.created // of the run before a restart
		}
		if id == "" {
			if id, err = s.CreateSandbox(ctx, in.Config); err != nil {
				return err
			}
			s.created = id
		}
		set("sandbox", id)
	}
	set("token", s.Key)
	for _, name := range []string{"program", "config", "noDebug", "args", "env", "cwd"} {
		delete(arguments, name)
	}
	return nil
}

// readProgram returns the text of a program's file. It reads no more of it than a launch can have.
func (s *adapterSession) readProgram(path string) (string, error) {
	f, err := s.OpenProgram(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	code, err := io.ReadAll(io.LimitReader(f, maxLaunchBytes+1))
	switch {
	case err != nil:
		return "", err
	case len(code) > maxLaunchBytes:
		return "", errTooLong
	case !utf8.Valid(code):
		return "", fmt.Errorf("%s is not UTF-8", path)
	}
	return string(code), nil
}

// hasElements reports whether args, a list or a string, is not empty.
func hasElements(args json.RawMessage) bool {
	switch string(args) {
	case "", "null", "[]", `""`:
		return false
	}
	return true
}

// replaceArguments returns a request with its arguments changed. It changes a copy of them.
func replaceArguments(body []byte, change func(fields) error) ([]byte, error) {
	request, arguments := fields{}, fields{}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	if given := request["arguments"]; given != nil {
		if err := decode(given, &arguments); err != nil {
			return nil, err
		}
	}
	if err := change(arguments); err != nil {
		return nil, err
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	request["arguments"] = text
	return json.Marshal(request)
}

func (s *adapterSession) send(body []byte) error {
	return writeFrame(s.remote, body)
}

// receive sends the service's messages on to the editor until the connection ends. An end that the editor did not ask
// for is shown there.
func (s *adapterSession) receive() error {
	reader := bufio.NewReaderSize(s.remote, readBufferBytes)
	for {
		body, err := readFrame(reader, func() int { return maxServiceBytes })
		if err != nil {
			reason := fmt.Errorf("%w: %w", errConnection, err)
			return errors.Join(reason,
				s.out.sendEvent("output", godap.OutputEventBody{Category: "important", Output: reason.Error() + "\n"}),
				s.out.sendEvent("exited", godap.ExitedEventBody{ExitCode: 1}),
				s.out.sendEvent(TerminatedEvent, nil))
		}
		var m struct{ Type, Command string }
		content := fields{}
		if err := errors.Join(json.Unmarshal(body, &m), json.Unmarshal(body, &content)); err != nil {
			return fmt.Errorf("decode a message of the service: %w", err)
		}
		if m.Type == "response" && m.Command == "initialize" {
			continue // the editor has its answer
		}
		if err := s.out.forward(content); err != nil {
			return err
		}
		if m.Type == "response" && m.Command == "disconnect" {
			return nil
		}
	}
}
