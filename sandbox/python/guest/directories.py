"""The directories of a guest.

In a guest with a private root they are /session and /tmp. Without private mounts they are in a folder of the machine.
"""

import os
import sys
import tempfile

OWN = os.path.dirname(os.path.abspath(__file__))  # the directory of these modules
session, tmp = "/session", "/tmp"


def use(folder: str) -> None:
    """Makes the session and tmp in folder the directories of this guest, also in its environment variables."""
    global session, tmp
    sys.path[:] = [folder + "/session" if p == session else p for p in sys.path]
    session, tmp = folder + "/session", folder + "/tmp"
    os.environ.update(HOME=session, TMPDIR=tmp, MPLCONFIGDIR=tmp + "/.mpl")
    tempfile.tempdir = None
