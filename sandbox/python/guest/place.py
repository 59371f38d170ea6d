"""Where a child's own folders are. Behind a root of its own they are /session and
/tmp; where the machine gives no private mounts, they lie in a folder of the host."""

import os
import sys
import tempfile

HOME = os.path.dirname(os.path.abspath(__file__))  # of our own code
session, tmp = "/session", "/tmp"


def settle(folder: str) -> None:
    """Makes the session and tmp in folder this child's own, for what asks the environment, too."""
    global session, tmp
    sys.path[:] = [folder + "/session" if p == session else p for p in sys.path]
    session, tmp = folder + "/session", folder + "/tmp"
    os.environ.update(HOME=session, TMPDIR=tmp, MPLCONFIGDIR=tmp + "/.mpl")
    tempfile.tempdir = None
