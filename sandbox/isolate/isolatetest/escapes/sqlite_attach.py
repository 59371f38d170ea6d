# family: python
# tries: to attach a database file of the machine
# invariant: 8
# layers: root
# proof: secret

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("ATTACH ? AS host", (database_file,))
db.execute("SELECT token FROM host.secrets").fetchone()[0]
