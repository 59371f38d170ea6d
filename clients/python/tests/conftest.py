import os
import pathlib
import subprocess

import httpx
import pytest
from glasshouse_sandbox import Client

ROOT = pathlib.Path(__file__).parents[3]


class SharedService:
    """A service that the tests share. One that has ended or does not answer fails one test: the next starts another."""

    def __init__(self, folder):
        self._folder, self._client = folder, None
        self._binary = os.environ.get("GLASSHOUSE_BINARY") or None  # None: build it

    def client(self):
        """Returns a client of a service that runs."""
        if self._client is not None and not self._answers():
            self.close()
        if self._client is None:
            self._client = Client.local(self._built())
        return self._client

    def close(self):
        """Stops the service."""
        if self._client is not None:
            client, self._client = self._client, None
            client.close()

    def _answers(self):
        try:
            self._client._http.get("/readyz")  # with any status: it may still be preparing
            return True
        except httpx.HTTPError:
            return False

    def _built(self):
        if self._binary is None:
            binary = str(self._folder / "glasshouse")
            build = ["go", "build", "-tags", "nomsgpack", "-o", binary, "./cmd/glasshouse"]
            subprocess.run(build, cwd=ROOT, check=True)
            self._binary = binary
        return self._binary


@pytest.fixture(scope="session")
def shared_service(tmp_path_factory):
    shared = SharedService(tmp_path_factory.mktemp("bin"))
    yield shared
    shared.close()


@pytest.fixture
def service(shared_service):
    """A running service with its embedded PostgreSQL: its address and an admin's key, as a Client."""
    return shared_service.client()


@pytest.fixture
def sandbox(service):
    with service.sandboxes.create() as sandbox:
        yield sandbox
