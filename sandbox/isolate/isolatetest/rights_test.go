package isolatetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"glasshouse/policy/polltest"
)

// rights are what /proc says of a process.
type rights struct {
	uid, groups, capabilities, bounding, noNewPrivs, seccomp, uidMap string
}

func rightsOf(t *testing.T, pid int) (r rights) {
	t.Helper()
	folder := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(folder + "/status")
	Must(t, err)
	for line := range strings.SplitSeq(string(status), "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "Uid":
			r.uid, _, _ = strings.Cut(value, "\t")
		case "Groups":
			r.groups = value
		case "CapInh", "CapPrm", "CapEff", "CapAmb":
			value = strings.TrimLeft(value, "0")
			if value != "" && !strings.Contains(r.capabilities, value) {
				r.capabilities += value
			}
		case "CapBnd":
			r.bounding = strings.TrimLeft(value, "0")
		case "NoNewPrivs":
			r.noNewPrivs = value
		case "Seccomp":
			r.seccomp = value
		}
	}
	body, err := os.ReadFile(folder + "/uid_map")
	Must(t, err)
	r.uidMap = strings.Join(strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(body)), "\n", " | ")), " ")
	return r
}

// The rights of the processes of a sandbox, as the machine sees them. A zygote has those of a guest.
func TestZygotesHaveTheRightsOfGuests(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), nil)
	guest, zygote := processOf(t, s), zygoteOf(t, s)
	isRoot := os.Geteuid() == 0
	processes := map[string]rights{"guest": rightsOf(t, guest), "zygote": rightsOf(t, zygote)}
	if HasNamespaces() {
		fields := stat(zygote)
		launcher, _ := strconv.Atoi(fields[1])
		processes["launcher"] = rightsOf(t, launcher)
	}
	for _, name := range []string{"launcher", "zygote", "guest"} {
		if r, has := processes[name]; has {
			t.Logf("report: %s, %s: %+v", levelName(t), name, r)
		}
	}
	if launcher, has := processes["launcher"]; has && isRoot && launcher.uid == "0" {
		t.Errorf("launcher: got the uid 0 of the machine, want an unprivileged one")
	}
	for _, name := range []string{"zygote", "guest"} {
		r, capabilities := processes[name], ""
		if name == "zygote" && !HasNamespaces() && isRoot {
			capabilities = "e0" // CAP_KILL, CAP_SETGID and CAP_SETUID, whose use its filter leaves to the service
		}
		if r.capabilities != capabilities || r.noNewPrivs != "1" || r.seccomp != "2" {
			t.Errorf("%s: got %+v, want the capabilities %q, no_new_privs and a filter", name, r, capabilities)
		}
		if isRoot && (r.uid == "0" || r.groups != "") {
			t.Errorf("%s: got %+v, want another uid than root, and no groups", name, r)
		}
		if isRoot && r.bounding != "" {
			t.Errorf("%s: got the bounding set %s, want none", name, r.bounding)
		}
	}
	_, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", zygote))
	if !isRoot && errors.Is(err, fs.ErrPermission) {
		t.Logf("report: %s: an ordinary user may not see the descriptors of a process that is not dumpable", levelName(t))
	} else {
		checkDescriptors(t, zygote)
	}
	if isRoot && processes["zygote"].uid == processes["guest"].uid {
		t.Errorf("zygote and guest have the uid %s, want different ones", processes["zygote"].uid)
	}
	if HasNamespaces() && isRoot && strings.Contains(" "+processes["zygote"].uidMap, " 0 0 ") {
		t.Errorf("the zygote's uids: got %s, want none of the machine's root", processes["zygote"].uidMap)
	}
}

// checkDescriptors expects that a zygote has standard input, output and errors, the control socket, and the descriptor
// that tells of the end of children. While it forks a child, it has those of the child, too.
func checkDescriptors(t *testing.T, zygote int) {
	t.Helper()
	polltest.Succeeds(t, func() error {
		links, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", zygote))
		if err != nil {
			return err
		}
		var kinds []string
		for _, link := range links {
			target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", zygote, link.Name()))
			kind, _, _ := strings.Cut(target, ":[")
			kinds = append(kinds, kind)
		}
		if got := strings.Join(kinds, " "); got != "/dev/null pipe pipe socket anon_inode" {
			return fmt.Errorf("descriptors of the zygote: got %s", got)
		}
		return nil
	})
}

func levelName(t *testing.T) string {
	level, _ := Shared(t).Level()
	return fmt.Sprintf("level %s as uid %d", level, os.Geteuid())
}
