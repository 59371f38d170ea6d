"""The service of the tests: one that has ended does not fail the tests after it."""

import glasshouse_sandbox
import pytest


def test_the_next_test_gets_another_service(shared_service):
    first = shared_service.client()
    assert shared_service.client() is first
    first._local._process.kill()
    first._local._process.wait()
    assert shared_service.client().run("print('hi')").stdout == "hi\n"


def test_a_start_that_fails_is_tried_again(shared_service, monkeypatch):
    shared_service.close()
    with monkeypatch.context() as context:
        context.setattr(shared_service, "_binary", "/none")
        with pytest.raises(glasshouse_sandbox.ConnectionFailed):
            shared_service.client()
    assert shared_service.client().run("1 + 1").result == 2
