"""Runs pip on a virtual environment, without running anything that is installed there.

The arguments are the environment's folder, the folder of its packages, the folder that
pip is imported from, and then pip's own. Python is the environment's, started with -I
and -S: no .pth file is read. What is installed is seen, and never imported.
"""

import importlib.machinery
import sys

prefix, site, pip = sys.argv[1:4]
sys.argv[:] = ["pip", *sys.argv[4:]]
sys.prefix = sys.exec_prefix = prefix  # as module site does it for a virtual environment


class Apart(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        return super().find_spec(fullname, [p for p in (sys.path if path is None else path) if p != site], target)

    @classmethod
    def find_distributions(cls, *args, **kwargs):
        context = args[0] if args else kwargs.get("context")
        return () if context is not None and list(context.path) == [pip] else super().find_distributions(*args, **kwargs)


sys.meta_path[:] = [Apart if finder is importlib.machinery.PathFinder else finder for finder in sys.meta_path]
sys.path[:] = [pip, *sys.path, site]

from pip._internal.cli.main import main  # noqa: E402

sys.exit(main())
