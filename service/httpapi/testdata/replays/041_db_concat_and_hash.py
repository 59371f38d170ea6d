import hashlib, json
rows = await db_query("SELECT * FROM users ORDER BY id LIMIT 200")
text = json.dumps(rows, default=str, sort_keys=True)
print(len(text), hashlib.sha256(text.encode()).hexdigest())
rows = await db_query("SELECT * FROM users LIMIT 200")
print(hashlib.sha256(json.dumps(rows, default=str).encode()).hexdigest())
list(rows[0])
