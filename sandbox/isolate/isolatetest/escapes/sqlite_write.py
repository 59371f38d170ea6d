# family: python
# tries: to write a file in the shared root by a database's name
# invariant: 6
# layers: readonly, landlock, uid

import sqlite3

db = sqlite3.connect("/glasshouse/x.db")
db.execute("CREATE TABLE t (x)")
db.commit()
"escaped"
