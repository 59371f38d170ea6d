# family: python
# tries: to open a database of the host as one more of its own
# invariant: 8
# layers: root
# proof: secret

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("ATTACH ? AS host", (database_file,))
db.execute("SELECT token FROM host.secrets").fetchone()[0]
