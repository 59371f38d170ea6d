tests = [
    "SELECT * FROM ordrs",
    "SELECT status, count(*) FROM orders",
    "SELECT 1/0",
    "DELETE FROM orders",
    "SELEC 1",
    "SELECT id FROM orders; SELECT 2",
    "SELECT 'abc'::int",
]
for sql in tests:
    try:
        print(await db_query(sql))
    except DatabaseError as e:
        print(f"{type(e).__name__:<14} {e.reason:<20} {e.sqlstate} pos={e.position} nearest={e.nearest}")
