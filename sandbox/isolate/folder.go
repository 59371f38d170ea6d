package isolate

import (
	"errors"
	"fmt"
	"os"
)

// folderUID owns, inside, what children leave in the folder of the host's: the last
// slot, which no other child gets but after all others have had theirs.
const folderUID = firstIn + uidSlots - 1

// Folder hands out the mount of the config's folder, to be one child's Session, with
// the UID that is to be that child's; it can be had once from each zygote. ok is
// false where the config has no folder.
func (i *Isolator) Folder() (mount, uid int, ok bool, err error) {
	if i.config.Folder == "" {
		return -1, 0, false, nil
	}
	z, err := i.nurseries[len(i.nurseries)-1].parent()
	if err != nil {
		return -1, 0, true, err
	}
	i.folderMu.Lock()
	defer i.folderMu.Unlock()
	if z.folder < 0 {
		return -1, 0, true, errors.New("the mount of " + i.config.Folder + " was lost: start the service again")
	}
	if os.Geteuid() == 0 {
		uid = folderUID
		if err := os.Chown(i.config.Folder, firstUID+uid-firstIn, firstUID+uid-firstIn); err != nil {
			return -1, 0, true, fmt.Errorf("give %s to the account that code runs as: %w", i.config.Folder, err)
		}
	}
	mount, z.folder = z.folder, -1
	return mount, uid, true, nil
}

// dropFolder closes the mount of a zygote that is gone.
func (i *Isolator) dropFolder(z *zygote) {
	i.folderMu.Lock()
	defer i.folderMu.Unlock()
	z.letFolderGo()
}
