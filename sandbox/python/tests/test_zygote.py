"""The memory of the zygote. Each test runs in a process of its own."""

import os
import pathlib
import re
import subprocess
import sys

GUEST = pathlib.Path(__file__).parents[1] / "guest"


def printed(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_new_objects_come_from_new_pools():
    out = printed(f"""
import sys
sys.path.insert(0, {str(GUEST)!r})
import zygote
holes = [bytes(n % 400 + 20) for n in range(30_000)]
del holes[::3]
zygote.fill_pools()
fresh = [[bytes(size) for _ in range(30)] for size in (100, 200, 300, 400)]
print(max(len({{id(each) >> 14 for each in kind}}) for kind in fresh) <= 2)
""")
    assert out == "True"  # one pool for each size, or two


def test_arenas_are_on_whole_huge_pages(extension):
    out = printed(
        """
import gc, sys
held = [bytes(450) for _ in range(100_000)]
first = [each for each in gc.get_objects() if sys.getsizeof(each) < 400]  # objects of the interpreter
arenas = id(held[0]) >> 40  # and not in the program's data or heap
pages = {id(each) >> 21 for each in held + first if id(each) >> 40 == arenas}
maps = [[int(end, 16) for end in line.split()[0].split("-")] for line in open("/proc/self/maps")]
print(len(pages) >= 20, all(any(low <= page << 21 and page + 1 << 21 <= high for low, high in maps) for page in pages))
del held
print(sum(len(bytes(300)) for _ in range(100_000)))  # freed memory can be used again
""",
        LD_PRELOAD=extension.__file__,
    )
    assert out == "True True\n30000000"


def child_of_zygote(extension) -> str:
    """Returns the beginning of a program: a zygote with the memory kept, and then what its child does."""
    return f"""
import os, socket, struct, sys
sys.path[:0] = [{str(GUEST)!r}, {str(pathlib.Path(extension.__file__).parent)!r}]
import fork_server, syscall_batch, syscalls, zygote
kept = [str(n) for n in range(100_000)]
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if os.fork() == 0:
    ours.close()
    fork_server.serve(theirs.fileno(), zygote.child_signals(), [(0, syscalls.Batch().words)])
"""


def test_children_share_the_memory_of_the_zygote(extension):
    out = printed(
        child_of_zygote(extension)
        + """
    maps = [line.split(maxsplit=5) for line in open("/proc/self/maps")]
    shared = [[int(end, 16) for end in each[0].split("-")] for each in maps if "/memfd:zygote" in each[-1]]
    found = sum(any(low <= id(text) < high for low, high in shared) for text in kept)
    intact = kept == [str(n) for n in range(100_000)]
    kept[0] = "of this child"
    os.write(1, f"{found > 99_000} {intact}\\n".encode())
    os._exit(0)
theirs.close()
assert ours.recv(10) == b"ready"
for number in range(2):
    socket.send_fds(ours, [struct.pack(">cIII", b"F", number, 0, 0)], [0, 1, 2])
    while ours.recv(100)[:1] != b"x":
        pass
""",
        LD_PRELOAD=extension.__file__,
    )
    assert out == "True True\nTrue True"


def test_a_child_gives_back_unchanged_copies(extension, capsys):
    if tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) < (6, 7):
        with capsys.disabled():
            print("\nreport: not tested, because the kernel is older than 6.7: a child that gives back copies")
        return
    out = printed(
        child_of_zygote(extension)
        + """
    mapped = [line.split(maxsplit=5) for line in open("/proc/self/maps") if "/memfd:zygote" in line]
    held = kept[:50_000]  # copies half of the pages, for the reference counts
    del held
    changed = kept[7] = "of this child"
    low, offset, pages = max(
        ((int(start, 16), int(each[2], 16), int(end, 16) - int(start, 16) >> 12)
         for each in mapped if each[1] == "rw-p" for start, end in [each[0].split("-")]),
        key=lambda each: each[2],
    )
    copies = struct.pack("<QII", low, offset >> 12, 1) + struct.pack("<HH", 0, min(pages, 65535))
    given = syscall_batch.give_back(copies)
    intact = kept[7] is changed and kept[:7] + kept[8:] == [str(n) for n in range(100_000) if n != 7]
    os.write(1, f"{given > 300 and intact}\\n".encode())
    os._exit(0)
theirs.close()
assert ours.recv(10) == b"ready"
socket.send_fds(ours, [struct.pack(">cIII", b"F", 1, 0, 0)], [0, 1, 2])
while ours.recv(100)[:1] != b"x":
    pass
""",
        LD_PRELOAD=extension.__file__,
    )
    assert out == "True"
