"""The directories of a guest.

With a root of its own they are /session and /tmp. On a machine without private mounts they are in a folder of the host.
"""

import os
import sys
import tempfile

OWN = os.path.dirname(os.path.abspath(__file__))  # the directory of these modules
session, tmp = "/session", "/tmp"


def use(folder: str) -> None:
    """Makes the session and tmp in folder the directories of this guest, also for code that asks the environment."""
    global session, tmp
    sys.path[:] = [folder + "/session" if p == session else p for p in sys.path]
    session, tmp = folder + "/session", folder + "/tmp"
    os.environ.update(HOME=session, TMPDIR=tmp, MPLCONFIGDIR=tmp + "/.mpl")
    tempfile.tempdir = None
