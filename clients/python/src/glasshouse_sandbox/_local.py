"""A service of its own for a client: `glasshouse serve` on a free port."""

from __future__ import annotations

import pathlib
import subprocess
import tempfile
import threading
from collections.abc import Mapping

from .errors import ConnectionFailed

STOP_TIMEOUT = 30.0  # seconds


class Service:
    """A running `glasshouse serve`. url and key are those of its first admin."""

    def __init__(self, binary: str, flags: Mapping[str, str]) -> None:
        self._folder = None
        folder = flags.get("data_dir")
        if folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="glasshouse-", ignore_cleanup_errors=True)
            folder = self._folder.name
            pathlib.Path(folder).chmod(0o755)  # the account of the embedded PostgreSQL must be able to enter
        arguments = [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", folder]
        arguments += [f"--{name.replace('_', '-')}={value}" for name, value in flags.items() if name != "data_dir"]
        log = tempfile.TemporaryFile("w+")
        try:
            self._process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True)
        except OSError as error:
            raise ConnectionFailed(f"cannot start {binary}: {error}; name the program with binary=") from error
        self.url = ""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("Listening on "):
                self.url = line.split()[2]
                break
        if not self.url:
            self._process.wait()
            log.seek(0)
            raise ConnectionFailed(f"{binary} serve ended: {log.read()[-2000:]}")
        self.key = (pathlib.Path(folder) / "admin.key").read_text().strip()
        threading.Thread(target=self._process.stdout.read, daemon=True).start()  # a full pipe would stop the service

    def stop(self) -> None:
        """Ends the service, and deletes its data unless the caller named the folder."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()
