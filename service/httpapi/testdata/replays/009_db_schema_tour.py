tables = await db_tables()
print(len(tables), "tables:", tables)
for t in tables[:4]:
    cols = await db_schema(t)
    print(t)
    for c in cols:
        print("   ", c["column_name"], c["data_type"], "NULL" if c["is_nullable"] else "NOT NULL")
