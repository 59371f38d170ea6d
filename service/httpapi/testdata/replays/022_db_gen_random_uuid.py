try:
    rows = await db_query("SELECT gen_random_uuid() AS u, random() AS r FROM generate_series(1, 4)")
    for r in rows:
        print(r["u"], r["r"])
except DatabaseError as e:
    print("refused:", e.reason, e)
