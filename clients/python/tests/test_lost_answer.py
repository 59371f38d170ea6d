"""A run with an idempotency key, whose answer is lost on its way, is asked for again and runs once."""

import contextlib
import socket
import threading

import glasshouse_sandbox
import pytest
from glasshouse_sandbox import Client

COUNT = "runs = globals().get('runs', 0) + 1\nprint('ran')\nruns"


class LossyProxy:
    """Forwards connections to a service, and closes the first few when the service has answered."""

    def __init__(self, url, losses):
        self.losses = losses
        self._service = (url.host, url.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, socket.create_connection(self._service) as service:
            threading.Thread(target=self._forward, args=(client, service), daemon=True).start()
            while data := service.recv(1 << 16):
                if self.losses > 0:
                    self.losses -= 1
                    break
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _forward(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)

    def close(self):
        self._listener.close()


@pytest.fixture
def lossy(service):
    made = []

    def client(losses):
        proxy = LossyProxy(service._http.base_url, losses)
        made.append(proxy)
        key = service._http.headers["Authorization"].removeprefix("Bearer ")
        made.append(Client(proxy.url, key))
        return made[-1]

    yield client
    for one in reversed(made):
        one.close()


@pytest.mark.parametrize("streams", [False, True])
def test_lost_answers_are_asked_for_again(lossy, sandbox, streams):
    printed = []
    callback = {"on_stdout": printed.append} if streams else {}
    run = lossy(2).sandboxes.get(sandbox.id).run
    first = run(COUNT, idempotency_key=f"first {sandbox.id}", **callback)
    assert (first.status, first.result, first.stdout) == ("completed", 1, "ran\n")
    assert "".join(printed) == ("ran\n" if streams else "")
    again = sandbox.run(COUNT, idempotency_key=f"first {sandbox.id}")
    assert (again.execution_id, again.result) == (first.execution_id, 1)
    assert sandbox.run(COUNT).result == 2


def test_without_a_key_a_lost_answer_is_an_error(lossy, sandbox):
    with pytest.raises(glasshouse_sandbox.ConnectionFailed):
        lossy(1).sandboxes.get(sandbox.id).run(COUNT)


def test_too_many_lost_answers_are_an_error(lossy, sandbox, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(glasshouse_sandbox.ConnectionFailed):
        lossy(100).sandboxes.get(sandbox.id).run(COUNT, idempotency_key=f"lost {sandbox.id}")


def test_key_of_another_run_is_refused(service):
    service.run("1", idempotency_key="a key")
    with pytest.raises(glasshouse_sandbox.InvalidInput, match="Idempotency-Key"):
        service.run("2", idempotency_key="a key")


@pytest.mark.parametrize("key", ["", " a", "a\n", "é"])
def test_key_that_a_header_cannot_have_is_an_error(service, key):
    with pytest.raises(ValueError, match="idempotency_key"):
        service.run("1", idempotency_key=key)
