package zygote

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"glasshouse/sandbox/isolate/filetree"
)

// maxLines is how many lines of a zygote's output are logged: packages write them too.
const maxLines = 1000

// outputGrace is how long the end of a zygote waits for the last lines of its output. A process that survives a zygote
// without a PID namespace may keep the pipe.
const outputGrace = time.Second

// outputLog collects the output of a zygote.
type outputLog struct {
	from      *os.File
	done      sync.WaitGroup // until the zygote's output ends
	last      string         // the last line
	traceback bool           // the output has a Python traceback, so the launcher had started Python
}

func (o *outputLog) read(log func(line string)) {
	defer o.from.Close()
	n := 0
	for lines := bufio.NewScanner(o.from); lines.Scan(); n++ {
		o.last = lines.Text()
		o.traceback = o.traceback || strings.HasPrefix(o.last, "Traceback ")
		if n < maxLines {
			log(o.last)
		} else if n == maxLines {
			log("its further output is not logged")
		}
	}
}

// end waits until the lines that a zygote has written before its end are logged.
func (o *outputLog) end() {
	_ = o.from.SetReadDeadline(time.Now().Add(outputGrace)) // fails if all is read
	o.done.Wait()
}

// The limits of the files that a zygote without namespaces may have, and how often they are measured: while the zygote
// starts, and then.
const (
	startInterval = 200 * time.Millisecond
	fileInterval  = 2 * time.Second
)

// limitFiles kills a zygote whose packages write more files to its folder than /tmp of a root could have, and removes
// them. It returns when the zygote has ended.
func (z *Zygote) limitFiles(folder string, log func(line string)) {
	for {
		interval := startInterval
		if time.Since(z.StartedAt) > startTimeout*time.Second {
			interval = fileInterval
		}
		select {
		case <-time.After(interval):
		case <-z.dead:
			return
		}
		size, err := filetree.Measure(folder, maxInodes)
		isHidden := errors.Is(err, fs.ErrPermission) // a package does not let its files be counted
		if !isHidden && size.Bytes <= tmpBytes && size.Files < maxInodes {
			continue
		}
		log(fmt.Sprintf("its packages have written more than %d MiB or %d files: it is ended", tmpBytes>>20, maxInodes))
		z.kill()
		<-z.dead
		if err := filetree.RemoveAll(folder); err != nil {
			log(fmt.Sprintf("remove the files of its packages: %v", err))
		}
		return
	}
}
