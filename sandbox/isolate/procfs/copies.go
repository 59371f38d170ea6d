package procfs

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// zygoteFile is how the file with the memory of a zygote appears in /proc/pid/maps (share.c).
const zygoteFile = "/memfd:zygote (deleted)"

const (
	pageBytes   = 4096
	maxRunPages = 1<<16 - 1 // CopiesOf has 16 bits for a page

	maxCopiesBytes = 64 << 10 // more might not fit into the buffer of a socket

	pagemapScan        = 0xc0606610 // PAGEMAP_SCAN of linux/fs.h, since Linux 6.7
	pageIsFile, isHere = 1 << 2, 1 << 3
)

// scanArguments is struct pm_scan_arg.
type scanArguments struct {
	size, flags                        uint64
	start, end, walkEnd                uint64
	vec                                *pageRegion
	vecLen, maxPages                   uint64
	inverted, mask, anyOf, returnFlags uint64
}

// pageRegion is struct page_region.
type pageRegion struct{ start, end, _ uint64 }

// CopiesOf returns the pages of its zygote's memory that a process has copied, in the form of a protocol.KindCopies
// frame: give_back in share.c describes it. It returns nothing if the kernel or the process has no such pages, and the
// first ones of a process with thousands of runs of copies. The process must be stopped.
func CopiesOf(pid int) (body []byte) {
	dir := "/proc/" + strconv.Itoa(pid)
	pagemap, err := os.Open(dir + "/pagemap")
	if err != nil {
		return nil
	}
	defer pagemap.Close()
	maps, _ := os.ReadFile(dir + "/maps")
	regions := make([]pageRegion, 1024)
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "rw-p" || !strings.HasSuffix(strings.TrimSpace(line), zygoteFile) {
			continue
		}
		low, high, _ := strings.Cut(fields[0], "-")
		start, _ := strconv.ParseUint(low, 16, 64)
		end, _ := strconv.ParseUint(high, 16, 64)
		offset, _ := strconv.ParseUint(fields[2], 16, 64)
		for start < end && len(body) < maxCopiesBytes {
			part := min(end, start+maxRunPages*pageBytes)
			runs, next := scan(pagemap, regions, start, part)
			if next <= start {
				return nil // the kernel cannot do this
			}
			if len(runs) > 0 {
				body = binary.LittleEndian.AppendUint64(body, start)
				body = binary.LittleEndian.AppendUint32(body, uint32(offset/pageBytes))
				body = binary.LittleEndian.AppendUint32(body, uint32(len(runs)))
				for _, r := range runs {
					body = binary.LittleEndian.AppendUint16(body, uint16((r.start-start)/pageBytes))
					body = binary.LittleEndian.AppendUint16(body, uint16((r.end-r.start)/pageBytes))
				}
			}
			start, offset = next, offset+next-start
		}
	}
	return body
}

// scan returns the runs of copied pages from start to end, and where it stopped. It uses the memory of regions.
func scan(pagemap *os.File, regions []pageRegion, start, end uint64) (runs []pageRegion, next uint64) {
	a := scanArguments{
		start: start, end: end,
		vec: &regions[0], vecLen: uint64(len(regions)),
		inverted: pageIsFile, mask: pageIsFile | isHere,
	}
	a.size = uint64(unsafe.Sizeof(a))
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, pagemap.Fd(), pagemapScan, uintptr(unsafe.Pointer(&a)))
	if errno != 0 {
		return nil, 0
	}
	return regions[:n], a.walkEnd
}
