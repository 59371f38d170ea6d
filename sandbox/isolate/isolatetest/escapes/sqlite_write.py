# family: python
# tries: to write a file to the shared root as a database
# invariant: 6
# layers: readonly, landlock, uid, user

import sqlite3

db = sqlite3.connect("/glasshouse/x.db")
db.execute("CREATE TABLE t (x)")
db.commit()
"escaped"
