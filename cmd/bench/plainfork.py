"""How long fork, exit and wait take, in milliseconds, once each line, of an
interpreter that has imported the modules named.

    plainfork.py COUNT MODULE,MODULE
"""

import gc
import importlib
import os
import sys
import time

for name in filter(None, sys.argv[2].split(",")):
    importlib.import_module(name)
gc.collect()
gc.freeze()
for _ in range(int(sys.argv[1])):
    begun = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print((time.perf_counter() - begun) * 1000)
