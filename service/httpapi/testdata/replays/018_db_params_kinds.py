from decimal import Decimal
r = await db_query(
    "SELECT :a::int + 1 AS a, :b AS b, :c::numeric * 2 AS c, :d::date AS d, :e::jsonb AS e, 3 = ANY(:f) AS f",
    {"a": 41, "b": "text with 'quotes' and :colon", "c": Decimal("1.10"), "d": "2024-02-29", "e": {"k": [1, None]}, "f": [1, 2, 3]})
for k, v in r[0].items():
    print(k, type(v).__name__, repr(v))
