package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/isolate/zygote"
	"glasshouse/sandbox/protocol"
)

// lockdownTimeout is how long a child may take to lock itself down.
const lockdownTimeout = 10 * time.Second

// lockdownFor returns the Enter message for a child, without its session directory.
func (env *warmEnvironment) lockdownFor(spec ProcessSpec) protocol.Enter {
	i := env.isolator
	enter := protocol.Enter{Filter: filterPlain, Landlock: i.level.landlock, Workspace: spec.Policy.WorkspaceMaxBytes}
	if spec.Policy.EnableNetworkAccess {
		enter.Filter, enter.Network = filterNetwork, env.network()
	}
	without := i.baseSpec.Without
	if i.uids.Count > 0 && !without.Has(layer.UID) {
		first := i.uids.First
		if i.level.namespaces {
			first = zygote.FirstInnerUID
		}
		enter.UID = first + int(i.uidCount.Add(1)%int64(i.uids.Count-1)) // SharedSessionDir has the last one
	}
	if without.Has(layer.Seccomp) {
		enter.Filter = ""
	}
	if without.Has(layer.Landlock) {
		enter.Landlock = false
	}
	return enter
}

// lockDown gives a forked child its limits and its session directory, and makes it lock
// itself down. isTold says that the child got its Enter from its zygote. lockDown closes the
// child if it fails.
func (p *zygotePool) lockDown(
	ctx context.Context,
	child *Process,
	spec ProcessSpec,
	enter protocol.Enter,
	isTold bool,
) (_ *Process, err error) {
	child.givenDir = spec.SessionDir
	if child.group != nil {
		err = child.group.SetLimits(
			cgroupLimits(spec.Policy),
		) // so that most children need no change when they are assigned
	}
	if err == nil {
		child.SessionDir, err = p.env.enterSessionDir(ctx, child, spec, enter, isTold)
	}
	if err == nil && child.group != nil && !child.group.Holds(child.pid) { // it joins by itself, and runs packages
		err = errors.New("it is not in its control groups")
	}
	if err != nil {
		child.Close()
		err = fmt.Errorf("lock a child down: %w", err)
		if child.failedToJoin() {
			err = errors.Join(errors.New("the child could not join its control groups"), err)
		}
		return nil, err
	}
	return child, nil
}

// enterSessionDir makes a child lock itself down in its session directory. It makes a new
// session directory if spec has none.
func (env *warmEnvironment) enterSessionDir(
	ctx context.Context, child *Process, spec ProcessSpec, enter protocol.Enter, isTold bool,
) (*SessionDir, error) {
	dir := spec.SessionDir
	if dir != nil {
		enter.UID = dir.uid
	}
	if env.isolator.level.namespaces {
		var given []int
		if dir != nil {
			given, enter.Attach = []int{dir.mountFD}, protocol.AttachFiles
			if dir.isShared {
				enter.Attach = protocol.AttachSession
			}
		}
		if enter.Network != nil && len(enter.Network.Sysctls) > 0 {
			given = append(given, int(env.isolator.sysctls.Fd()))
		}
		fds, err := child.zygote.Prepare(child.pidfd, enter, given...)
		if err != nil {
			return nil, err
		}
		if enter.Network != nil {
			child.Network = os.NewFile(uintptr(fds[1]), "network")
		}
		if err := child.lockDown(ctx, enter, isTold); err != nil {
			_ = unix.Close(fds[0])
			return nil, err
		}
		return &SessionDir{uid: enter.UID, mountFD: fds[0]}, nil
	}
	var err error
	if dir == nil {
		dir, err = env.isolator.makeSessionDir(enter.UID)
	} else {
		err = dir.clean(spec.Policy.WorkspaceMaxBytes)
	}
	if err != nil {
		return nil, err
	}
	enter.Folder = dir.folder
	child.zygote.ExpectUID(child.pid, enter.UID)
	if err = child.lockDown(ctx, enter, false); err != nil && dir != spec.SessionDir {
		dir.Close()
	}
	return dir, err
}

// lockDown makes the child lock itself down.
func (p *Process) lockDown(ctx context.Context, enter protocol.Enter, isTold bool) (err error) {
	if isTold {
		err = p.Conn.WriteGo()
	} else {
		err = p.Conn.Write(protocol.KindEnter, enter)
	}
	if err != nil {
		return err
	}
	timeout := lockdownTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	ready, err := p.Conn.ReadReady(timeout)
	if err != nil && ctx.Err() != nil {
		err = FullError(err)
	}
	if err == nil && ready.Error != "" {
		err = errors.New(ready.Error)
	}
	return err
}
