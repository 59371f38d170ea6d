"""Checks the HTTP API with schemathesis: sends requests that the OpenAPI document allows and requests that it forbids,
as each role and at each isolation level, and compares the answers with the document. `scripts/test nightly` runs it.

usage: check.py BINARY [--levels full,landlock] [--roles agent,developer,admin] [ARGUMENTS OF `st run` ...]
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS = 300
# A stream may wait for ever for its next event. schemathesis checks what comes within this time; an answer that has not
# begun by then is a finding.
STREAM_SECONDS = 5

# A recording, an artifact and a pending write, for the routes that read such things.
SAMPLE_CODE = """
total = 0
for n in range(5):
    total += n
open("artifacts/sample.txt", "w").write("sample")
db_query("DELETE FROM raw_data WHERE id = 1")
"""


# Statuses of requests that the schema allows: those of schemathesis, 410 for what has ended, and 413 for what is larger
# than a limit that the sandbox was created with.
ACCEPTED = ["2xx", "3xx", "401", "403", "404", "409", "410", "413", "429", "5xx"]
# Routes that refuse further requests that the schema allows, because JSON Schema cannot say what else must hold.
DEPENDENT = {
    "analyzeData": ["422"],  # the table is named in the query or in the body
    "callMCP": ["400"],  # the method is one of the protocol's
    "completeCode": ["422"],  # the cursor is in the code
    "connectDAP": ["426"],  # the request is a WebSocket handshake
    "createKey": ["422"],  # expires_at is in the future
    "createSandbox": ["422"],  # enable_network_access needs allowed_hosts
    "eraseUser": ["422"],  # the name is one line of visible characters
    "executeCode": ["422"],  # a file has content or content_base64
    "followConversation": ["422"],  # the id is that of an event
    "followExecutions": ["422"],
    "getDatabaseSchema": ["422"],  # the database is one that the key may use
    "getDatabaseSchemaInSandbox": ["422"],
    "listAllArtifacts": ["422"],  # the cursor is that of the list
    "listArtifacts": ["422"],
    "listAudit": ["422"],
    "listConnections": ["422"],
    "listConversations": ["422"],
    "listExecutions": ["422"],
    "listPendingWrites": ["422"],
    "listSandboxExecutions": ["422"],
    "listSandboxes": ["422"],
    "listStatements": ["422"],
    "listTopStatements": ["422"],  # since and until are in the years 1970 to 9999
    "queryDatabase": ["422"],  # the statement uses the parameters
    "queryDatabaseInSandbox": ["422"],
    "quickExecuteCode": ["422"],  # as createSandbox and executeCode
    "sendDebugCommand": ["422"],  # the arguments are those of the command, and valid where the program is
    "uploadFiles": ["400", "422"],  # names of fields are printable; a body that is no form needs path
}

# Routes that still answer for a sandbox that was deleted: its executions and their artifacts stay.
OUTLIVING = ["listArtifacts", "listSandboxExecutions"]


class Service:
    """A service of its own, with its embedded PostgreSQL, in a folder of its own."""

    def __init__(self, binary: str, level: str, folder: pathlib.Path):
        self.log = open(folder / "log", "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data"), "--isolation", level]
            + ["--key-requests", "0", "--max-sandboxes", "1000", "--drain", "1s"],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        assert self.process.stdout is not None
        signal.alarm(START_SECONDS)
        for line in self.process.stdout:
            if line.startswith("Listening on "):
                self.url = line.split()[2]
                break
        else:
            raise RuntimeError(f"the service did not start: {(folder / 'log').read_text(errors='replace')}")
        signal.alarm(0)
        self.admin_key = (folder / "data" / "admin.key").read_text().strip()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        self.log.close()

    def call(self, key: str, method: str, path: str, body: object = None) -> dict:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer " + key, "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error


def make_samples(service: Service, key: str, role: str) -> dict[str, list[str]]:
    """Makes the objects that paths name, and returns their ids by the kind of the path."""
    config = {"lifetime": 86400, "idle_timeout": 86400, "write_policy": "capture"}
    box = service.call(key, "POST", "/sandbox/create", config)["sandbox_id"]
    run = service.call(key, "POST", f"/sandbox/{box}/execute", {"code": SAMPLE_CODE})
    if run["status"] != "completed":
        raise RuntimeError(f"the sample failed: {run}")
    service.call(key, "PUT", f"/sandbox/{box}/files/sample.txt", "sample")
    samples = {
        "sandbox": [box],
        "execution": [run["execution_id"]],
        "artifact": [run["artifacts"][0]["artifact_id"]],
        "session": [],
        "path": ["sample.txt"],
    }
    if role == "agent":
        return samples
    # The session keeps its sandbox busy, so it has another.
    other = service.call(key, "POST", "/sandbox/create", config)["sandbox_id"]
    opened = service.call(key, "POST", f"/sandbox/{other}/debug/sessions", {"code": SAMPLE_CODE, "stop_on_entry": True})
    samples["session"].append(opened["session_id"])
    recorded = service.call(key, "POST", f"/sandbox/{box}/debug/sessions", {"code": SAMPLE_CODE})
    samples["execution"].append(recorded["execution_id"])
    return samples


@contextlib.contextmanager
def executions(service: Service, key: str) -> Iterator[None]:
    """Executes code again and again, so that the stream of all executions has events."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.2):
            with contextlib.suppress(RuntimeError):  # refused, because the key is at one of its limits
                service.call(key, "POST", "/sandbox/agent/quick-execute", {"code": "1"})

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def streams_of(document: dict) -> list[str]:
    """Returns the operations whose only successful answer is a stream of events, by the OpenAPI document."""
    return [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
        if list(operation["responses"].get("200", {}).get("content", {})) == ["text/event-stream"]
    ]


def configuration(samples: dict[str, list[str]], streams: list[str]) -> str:
    """Returns the configuration of schemathesis. Most requests name samples, unless they would delete them."""
    out = [f'hooks = "{HERE / "hooks.py"}"', "max-stream-events = 1", "request-timeout = 120"]
    out.append(f"checks.positive_data_acceptance.expected-statuses = {json.dumps(ACCEPTED)}")
    for kind, ids in samples.items():
        if ids:
            out.append(f"[dictionaries.{kind}]\nvalues = {json.dumps(ids)}")
    for paths, name, kind in (
        ("^/sandbox/{id}/", "id", "sandbox"),
        ("^/executions/{id}/(steps|explain|variables|find|debug)", "id", "execution"),
        ("^/executions/{id}$", "id", "execution"),
        ("^/artifacts/", "aid", "artifact"),
        ("^/debug/sessions/{sid}/events", "sid", "session"),
        ("^/debug/sessions/{sid}/{command}", "sid", "session"),
        ("/files/{path}", "path", "path"),
    ):
        if samples[kind]:
            pattern = paths.replace("{", "\\{").replace("}", "\\}")
            out.append(
                f"[[operations]]\ninclude-path-regex = {json.dumps(pattern)}\n"
                f'parameters = {{ "path.{name}" = {{ dictionary = "{kind}", probability = 0.8 }} }}'
            )
    for operation in streams:
        out.append(f'[[operations]]\ninclude-operation-id = "{operation}"\nrequest-timeout = {STREAM_SECONDS}')
    for operation in OUTLIVING:
        out.append(f'[[operations]]\ninclude-operation-id = "{operation}"\nchecks.use_after_free.enabled = false')
    for operation, statuses in DEPENDENT.items():
        out.append(
            f"[[operations]]\ninclude-operation-id = {json.dumps(operation)}\n"
            f"checks.positive_data_acceptance.expected-statuses = {json.dumps(ACCEPTED + statuses)}"
        )
    return "\n".join(out) + "\n"


# Operations that delete what the others need: the samples, and the key. They have a user of their own.
DESTRUCTIVE = ["deleteAllSandboxes", "revokeKey"]


def check(service: Service, role: str, folder: pathlib.Path, arguments: list[str]) -> bool:
    """Checks all operations as a role. Returns False if there is a finding."""
    return check_operations(service, role, role, folder, [*flags("--exclude-operation-id"), *arguments]) & (
        check_operations(service, role, role + "-2", folder, [*flags("--include-operation-id"), *arguments], True)
    )


def flags(flag: str) -> list[str]:
    return [argument for operation in DESTRUCTIVE for argument in (flag, operation)]


def check_operations(
    service: Service, role: str, user: str, folder: pathlib.Path, arguments: list[str], loses_key: bool = False
) -> bool:
    key = service.call(service.admin_key, "POST", "/keys", {"name": user, "user_id": "st-" + user, "role": role})["key"]
    streams = streams_of(service.call(key, "GET", "/openapi.json"))
    (folder / "schemathesis.toml").write_text(configuration(make_samples(service, key, role), streams))
    command = [
        *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
        *("--config-file", str(folder / "schemathesis.toml"), "run", service.url + "/openapi.json"),
        *("--checks", "all", "--header", "Authorization: Bearer " + key),
        *("--continue-on-failure", "--no-color", *arguments),
    ]
    with contextlib.nullcontext() if loses_key else executions(service, key):
        succeeded = subprocess.run(command, cwd=folder).returncode == 0
    if not loses_key:
        service.call(key, "GET", "/sandbox/statistics")  # otherwise most answers were 401, which says nothing
    return succeeded


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("binary")
    parser.add_argument("--levels", default="full,landlock")
    parser.add_argument("--roles", default="agent,developer,admin")
    options, arguments = parser.parse_known_args()
    failed = []
    for level in options.levels.split(","):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # PostgreSQL and guests run as other users
            service = Service(options.binary, level, pathlib.Path(folder))
            try:
                for role in options.roles.split(","):
                    print(f"--- level {level}, role {role}", flush=True)
                    if not check(service, role, pathlib.Path(folder), arguments):
                        failed.append(f"{level} as {role}")
            finally:
                service.stop()
    print("schemathesis:", "found nothing" if not failed else "failed at " + ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
