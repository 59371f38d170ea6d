import sqlite3

con = sqlite3.connect("inventory.db")
con.execute("CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, name TEXT, qty INT, added TEXT DEFAULT CURRENT_TIMESTAMP)")
con.executemany("INSERT INTO item (name, qty) VALUES (?, ?)", [("bolt", 120), ("nut", 80), ("gear", 7)])
con.commit()
for row in con.execute("SELECT id, name, qty, added FROM item ORDER BY qty"):
    print(row)
print(con.execute("SELECT sqlite_version(), count(*), sum(qty) FROM item").fetchone())
con.close()
