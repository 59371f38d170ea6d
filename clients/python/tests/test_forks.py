import asyncio

import glasshouse_sandbox
import pytest
from glasshouse_sandbox import Client
from test_client import NOW, async_client


def live_sandboxes(client) -> int:
    return client.statistics()["active_sandboxes"]


def test_forks_change_alone(sandbox):
    at = sandbox.run(NOW).result
    sandbox.run("n = 1")
    assert sandbox.restored is None
    with sandbox.fork(2)[0] as first, sandbox.fork()[0] as second:
        assert first.id != second.id != sandbox.id and first.config == sandbox.config
        assert (first.restored.executions, first.restored.exact, first.restored.left_out) == (2, True, 0)
        first.run("n += 1")
        assert [each.run("[n, rows[0]['at']]").result for each in (sandbox, first, second)] == [
            [1, at],
            [2, at],
            [1, at],
        ]
    with pytest.raises(glasshouse_sandbox.Gone):
        first.run("n")
    with pytest.raises(glasshouse_sandbox.InvalidInput, match="count"):
        sandbox.fork(21)


def test_rollback_restores_the_state_from_before(sandbox):
    sandbox.run("n = 1")
    wrong = sandbox.run("n = 'lost'")
    e = sandbox.rollback(before=wrong)
    assert e.ok and (e.restored.executions, e.restored.exact) == (1, True) and wrong.restored is None
    assert sandbox.run("n").result == 1
    sandbox.run("n = 5")
    sandbox.rollback(before=wrong.execution_id)
    assert sandbox.run("n").result == 1
    with pytest.raises(glasshouse_sandbox.NotFound):
        sandbox.rollback(before="../none")


def test_a_trial_leaves_the_sandbox_as_it_was(service, sandbox):
    sandbox.run("n = 1")
    before = live_sandboxes(service)
    with pytest.raises(ZeroDivisionError), sandbox.trial() as fork:
        assert fork.run("n += 1\nn").result == 2 and live_sandboxes(service) == before + 1
        1 / 0
    assert live_sandboxes(service) == before and sandbox.run("n").result == 1
    with pytest.raises(glasshouse_sandbox.Gone):
        fork.run("n")


def test_sweep_runs_each_variant_in_its_own_fork(service, sandbox):
    sandbox.run("base = [10]")
    before = live_sandboxes(service)
    variants = [{"n": 1}, {"n": "x"}, {"n": 3, "tags": {}}]
    found = sandbox.sweep("base.append(n)\nsum(base)", iter(variants), tags={"team": "sweep"})
    assert [variant for variant, _ in found] == variants
    assert [e.result for _, e in found] == [11, None, 13] and found[1][1].exception.type == "TypeError"
    assert all(e.tags == {"team": "sweep"} for _, e in found)
    assert sandbox.run("base").result == [10] and live_sandboxes(service) == before
    assert sandbox.sweep("1", []) == []


def test_sweep_deletes_its_forks_after_an_error(service, sandbox):
    before = live_sandboxes(service)
    with pytest.raises(TypeError, match="JSON"):
        sandbox.sweep("n", [{"n": 1}, {"n": object()}, {"n": 3}])
    assert live_sandboxes(service) == before


def test_sweep_runs_the_variants_at_the_same_time(sandbox):
    """A run has begun before the other one ends."""
    (_, first), (_, second) = sandbox.sweep("import time\ntime.sleep(2)", [{}, {}])
    assert first.created_at < second.completed_at and second.created_at < first.completed_at


def test_sweep_makes_as_many_forks_as_there_is_room_for(shared_service, monkeypatch):
    with Client.local(shared_service._built(), max_sandboxes_per_user="3") as client:
        retry_delay = glasshouse_sandbox._transport.retry_delay

        def without_limits(problem, attempt):  # a busy machine may have no process in time: Full
            if isinstance(problem, glasshouse_sandbox.LimitReached):
                pytest.fail("a sweep waits for room although it has forks to run")
            return retry_delay(problem, attempt)

        monkeypatch.setattr(glasshouse_sandbox._transport, "retry_delay", without_limits)
        sandbox = client.sandboxes.create()
        sandbox.run("base = 10")
        found = sandbox.sweep("base + n", [{"n": n} for n in range(5)])
        assert [e.result for _, e in found] == [10, 11, 12, 13, 14]
        assert len({e.sandbox_id for _, e in found}) == 5 and live_sandboxes(client) == 1


def test_forks_of_the_asynchronous_client(service):
    async def main():
        async with async_client(service) as client, await client.sandboxes.create() as sandbox:
            await sandbox.run("n = 1")
            found = await sandbox.sweep("n + m", [{"m": m} for m in range(3)])
            async with sandbox.trial() as trial:
                changed = await trial.run("n = 2\nn")
            (fork,) = await sandbox.fork()
            async with fork:
                copied = await fork.run("n")
            await sandbox.rollback(before=await sandbox.run("n = 9"))
            kept = await sandbox.run("n")
            return [e.result for _, e in found], changed.result, copied.result, kept.result

    assert asyncio.run(main()) == ([1, 2, 3], 2, 1, 1)


def test_replay_with_edited_rows(service):
    first = service.run("rows = db_query('SELECT 1 AS n, 2 AS m')\nprint(rows)\nlen(rows)")
    other = service.executions.replay(first.execution_id, edits={1: [{"n": 5}, {"n": 6, "m": 7}]})
    assert other.stdout == "[{'n': 5, 'm': None}, {'n': 6, 'm': 7}]\n" and other.result == 2
    assert other.replay.edited and other.replay.grade == "differs" and other.replay.rows == "log"
    with pytest.raises(glasshouse_sandbox.InvalidInput, match="no rows of statement 2"):
        service.executions.replay(first.execution_id, edits={2: []})
    assert service.executions.replay(first.execution_id, edits={}).replay.identical


def test_diff_compares_two_executions(service):
    first, second = service.run("print('a\\nb')\n{'n': 1}"), service.run("print('a\\nc')\n{'n': 1}")
    assert service.executions.diff(first.execution_id, second.execution_id) == [
        glasshouse_sandbox.Difference("stdout", 2, "b", "c")
    ]
    assert service.executions.diff(first.execution_id, first.execution_id) == []
    with pytest.raises(glasshouse_sandbox.NotFound):
        service.executions.diff(first.execution_id, "none")
