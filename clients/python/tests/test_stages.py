import asyncio

import pytest
from glasshouse_sandbox import QueryRefused
from test_client import async_client

SQL = """SELECT c.city, count(*) AS n
FROM customers c
JOIN orders o ON o.customer_id = c.id
WHERE o.status = :status
GROUP BY c.city
ORDER BY c.city"""
PAID = {"status": "paid"}
# The tests ask with all=True: otherwise a busy machine leaves out counts for which the time is used up.


def test_stages_of_a_statement(service):
    counted = service.stages(SQL, PAID, samples=True, all=True)
    (block,) = counted.blocks
    (where,) = [s for s in block["stages"] if s["kind"] == "where"]
    (paid,) = service.query(
        "SELECT count(*) AS n FROM orders WHERE status = :status", PAID
    ).rows
    assert (
        where["rows_out"] == paid["n"]
        and where["from_line"] == 4
        and len(where["sample"]["rows"]) == 5
    )
    assert (
        counted.rows == len(service.query(SQL, PAID).rows)
        and counted.raw["database"] == "knowledge"
    )
    assert str(counted) == counted.text and "l4 o.status = :status" in counted.text
    assert (
        counted._repr_html_().startswith("<pre>Statement, 6 lines")
        and "-&gt; l4" in counted._repr_html_()
    )


def test_findings_of_a_statement(service):
    right = "SELECT count(*) FROM orders"
    wrong = (
        "SELECT c.city, sum(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id "
        "JOIN order_items i ON i.order_id = o.id GROUP BY c.city"
    )
    assert service.stages(right, all=True).findings == []
    found = service.stages(wrong, all=True)
    (finding,) = [f for f in found.findings if f["kind"] == "fan-out"]
    assert finding["score"] >= 70 and finding["text"] in found.text


def test_why_cell_and_why_not(service):
    first = service.query(SQL, PAID).rows[0]
    cell = service.why_cell(SQL, PAID, row=0, column="n", database="knowledge")
    orders = {t["table"]: t["rows"] for t in cell.tables}["orders"]
    assert cell.value == str(first["n"]) and orders == first["n"] and cell.exact
    (other,) = service.query(
        "SELECT id FROM orders WHERE status <> :status ORDER BY id LIMIT 1", PAID
    ).rows
    lost = service.why_not(SQL, PAID, values={"orders.id": other["id"]})
    assert lost.missing and lost.because == "false" and lost.lost["from_line"] == 4
    assert (
        "Lost at l4" in lost.text
        and lost.text in service.why_not(SQL, PAID, values={"o.id": other["id"]}).text
    )
    there = service.why_not(SQL, PAID, values={"city": first["city"]})
    assert there.missing is False and there.lost is None and there.because == ""


def test_statements_of_an_execution(service):
    e = service.run(
        f"await db_query('SELECT 1 AS one')\nlen(await db_query('''{SQL}''', {PAID}))"
    )
    counted = service.executions.stages(e.execution_id, 2, all=True)
    assert counted.rows == e.result and counted.text.startswith("Query 2, 6 lines")
    assert service.executions.why_cell(e.execution_id, column="one").value == "1"
    lost = service.executions.why_not(e.execution_id, 2, values={"city": "Atlantis"})
    assert lost.missing and lost.text.startswith("Query 2, ")


def test_a_statement_without_stages_is_refused(service):
    with pytest.raises(QueryRefused, match="DELETE"):
        service.stages("DELETE FROM orders")
    with pytest.raises(QueryRefused):
        service.why_cell(SQL, PAID, row=9999, column="n")


def test_the_asynchronous_client_has_the_same(service):
    async def ask():
        async with async_client(service) as client:
            counted = await client.stages(SQL, PAID, all=True)
            e = await client.run(f"await db_query('''{SQL}''', {PAID})")
            again = await client.executions.stages(e.execution_id, all=True)
            return counted.blocks[0]["rows"], again.blocks[0]["rows"], again.rows

    assert len(set(asyncio.run(ask()))) == 1
