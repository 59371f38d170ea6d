# Named parameters, here with a list
ids = [1, 2, 3]
users = await db_query("SELECT id, name FROM users WHERE id = ANY(:ids) ORDER BY id", {"ids": ids})
inspect_var("users", users)
__result__ = users
