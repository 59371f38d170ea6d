rows = await db_query("SELECT id, tags FROM documents WHERE tags IS NOT NULL")
by_tag = {}
for r in rows:
    for t in r["tags"]:
        by_tag.setdefault(t, set()).add(r["id"])
tags = set(by_tag)
print(tags)
for a in tags:
    best = max(tags - {a}, key=lambda b: len(by_tag[a] & by_tag[b]) / len(by_tag[a] | by_tag[b]))
    print(f"{a:<12}{len(by_tag[a]):>4} most like {best}")
sql = await db_query("SELECT t, count(*) AS n FROM documents, unnest(tags) AS t GROUP BY t")
{r["t"]: r["n"] for r in sql}
