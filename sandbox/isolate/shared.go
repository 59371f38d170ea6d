package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
)

// SharedSessionDir hands out a Home in the config's Shared folder, for one child, from which the
// next one's comes; nil where the config has none. It can be had once from each
// zygote. What children leave there belongs, outside, to an account of its own where
// they have one.
func (i *Isolator) SharedSessionDir(ctx context.Context) (*SessionDir, error) {
	if i.config.SharedDir == "" {
		return nil, nil
	}
	if !i.rung.private {
		return nil, sandbox.Errorf(sandbox.FaultForbidden, "on this machine code cannot work in %s: the wall is of level %s, which has no mounts of its own", i.config.SharedDir, i.rung.level)
	}
	i.mu.Lock()
	of := i.current[environment.Default].nurseries
	i.mu.Unlock()
	z, err := of[len(of)-1].parent(ctx)
	if err != nil {
		return nil, err
	}
	i.sharing.Lock()
	defer i.sharing.Unlock()
	if z.shared < 0 {
		return nil, errors.New("the mount of " + i.config.SharedDir + " was lost: start the service again")
	}
	h := &SessionDir{mount: z.shared, data: -1}
	if i.ids.count > 0 {
		last := i.ids.count - 1 // which no other child gets
		h.uid = firstIn + last
		if err := os.Chown(i.config.SharedDir, i.ids.first+last, i.ids.first+last); err != nil {
			return nil, fmt.Errorf("give %s to the account that code runs as: %w", i.config.SharedDir, err)
		}
	}
	z.shared = -1
	return h, nil
}

// dropShared closes the mount of a zygote that forks no more.
func (i *Isolator) dropShared(z *zygote) {
	i.sharing.Lock()
	defer i.sharing.Unlock()
	z.letSharedGo()
}
