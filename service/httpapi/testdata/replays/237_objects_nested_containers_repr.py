l = [1, 2]
l.append(l)
d = {"self": None}
d["self"] = d
print(l, d)
from types import SimpleNamespace
from collections import deque, namedtuple
P = namedtuple("P", "x y")
print(SimpleNamespace(a=1, f=print, o=P(1, object())))
print(deque([1, 2], maxlen=3), memoryview(b"abc"), type("T", (), {})())
import io
io.StringIO("x")
