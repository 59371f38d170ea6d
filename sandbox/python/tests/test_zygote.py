"""What the zygote does with its memory, each in a process of its own."""

import pathlib
import subprocess
import sys

INSIDE = pathlib.Path(__file__).parents[1] / "inside"


def printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_new_objects_come_from_new_pools():
    out = printed(f"""
import sys
sys.path.insert(0, {str(INSIDE)!r})
import zygote
holes = [bytes(n % 400 + 20) for n in range(30_000)]
del holes[::3]
zygote.fill_pools()
fresh = [[bytes(size) for _ in range(30)] for size in (100, 200, 300, 400)]
print(max(len({{id(each) >> 14 for each in kind}}) for kind in fresh) <= 2)
""")
    assert out == "True"  # one pool a size, or the next, too: scattered they were in many


def test_arenas_fill_huge_pages(extension):
    out = printed(f"""
import importlib.util
spec = importlib.util.spec_from_file_location("syscall_batch", {extension.__file__!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
before = {{id(each) >> 20 for each in [bytes(450) for _ in range(5_000)]}}
module.pair_arenas()
held = [bytes(450) for _ in range(100_000)]
arenas = {{id(each) >> 20 for each in held}} - before
print(len(arenas) >= 40, sum(each ^ 1 not in arenas for each in arenas) <= 3)
del held
print(sum(len(bytes(300)) for _ in range(100_000)))  # what was freed can be had again
""")
    assert out == "True True\n30000000"
