# family: python
# tries: to start a program by unpickling
# invariant: 5
# layers: seccomp, landlock

import pickle
import subprocess


class Gadget:
    def __reduce__(self):
        return subprocess.check_call, ([python, "-I", "-S", "-c", "0"],)


pickle.loads(pickle.dumps(Gadget()))
"escaped"
