# why: second
# line: 7
# words: default; seen; one object for all calls
# The list of the first call is the list of the second.
def names(country, seen=[]):
    for row in db_query("SELECT name FROM users WHERE country = :c ORDER BY id LIMIT 2", {"c": country}):
        seen.append(row["name"])
    return seen
first = names("France")
second = names("Japan")
