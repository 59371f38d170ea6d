import os
import pathlib
import subprocess

import pytest
from glasshouse_sandbox import Client

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """A running service with its embedded PostgreSQL: its address and an admin's key, as a Client."""
    binary = os.environ.get("GLASSHOUSE_BINARY")
    if not binary:
        binary = str(tmp_path_factory.mktemp("bin") / "glasshouse")
        subprocess.run(["go", "build", "-tags", "nomsgpack", "-o", binary, "./cmd/glasshouse"], cwd=ROOT, check=True)
    with Client.local(binary) as client:
        yield client


@pytest.fixture
def sandbox(service):
    with service.sandboxes.create() as sandbox:
        yield sandbox
