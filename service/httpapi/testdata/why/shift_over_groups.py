# why: largest
# line: 7
# words: from the last row of one country to the first of the next; groupby('country')
# The first difference of a country is to the last value of another one.
users = db_frame("SELECT id, country, id * 2.5 AS spent FROM users ORDER BY id LIMIT 40")
users = users.sort_values(["country", "id"])
users["growth"] = users["spent"].diff()
largest = users["growth"].max()
