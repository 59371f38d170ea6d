# why: largest
# line: 7
# words: 8 rows used the previous row of another country
# The first difference of a country is to the last value of another one.
users = db_frame("SELECT id, country, id * 2.5 AS spent FROM users ORDER BY id LIMIT 40")
users = users.sort_values(["country", "id"])
users["growth"] = users["spent"].diff()
largest = users["growth"].max()
