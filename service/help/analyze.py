# Code of the route analyze-data. context has table_name, analysis_type, limit and database.
name, kind, limit = context["table_name"], context["analysis_type"], context["limit"]
database = context["database"] or None  # the default one
if kind == "schema":
    columns = await db_schema(name, database)
    __result__ = {"table_name": name, "schema": columns, "column_count": len(columns), "analysis_type": kind}
elif kind == "summary":
    columns = await db_schema(name, database)

    def quote(part):
        return '"' + part.replace('"', '""') + '"'

    table = name  # as db_tables writes it
    if table not in await db_tables(database):
        table = ".".join(quote(part) for part in name.split(".", 1))
    total = (await db_query(f"SELECT count(*) AS n FROM {table}", database=database))[0]["n"]
    sample = await db_query(f"SELECT * FROM {table} LIMIT :n", {"n": limit}, database)
    summary = []
    for column in columns:
        q = quote(column["column_name"])
        numeric = column["data_type"].split("(")[0] in ("integer", "bigint", "smallint", "numeric", "double precision", "real")
        ordered = numeric or column["data_type"].startswith(("date", "timestamp", "text", "character varying"))
        if column["masked"]:  # a statement may not compute anything from it
            summary.append({"column_name": column["column_name"], "data_type": column["data_type"], "masked": True})
            continue
        parts = [f"count(*) - count({q}) AS null_count"]
        if ordered:
            parts += [f"min({q}) AS min", f"max({q}) AS max", f"count(DISTINCT {q}) AS distinct_count"]
        if numeric:
            parts += [f"avg({q})::float8 AS mean", f"stddev({q})::float8 AS stddev"]
        figures = (await db_query(f"SELECT {', '.join(parts)} FROM {table}", database=database))[0]
        summary.append({"column_name": column["column_name"], "data_type": column["data_type"], **figures})
    __result__ = {"table_name": name, "total_rows": total, "columns": summary, "sample_data": sample, "analysis_type": kind}
else:
    __result__ = {"tables": await db_tables(database), "analysis_type": kind}
