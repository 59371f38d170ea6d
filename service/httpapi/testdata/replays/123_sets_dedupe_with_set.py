emails = ["ann@x.org", "bob@x.org", "ann@x.org", "cy@y.net", "di@z.com", "bob@x.org", "ed@y.net"]
unique = list(set(emails))
print(len(emails), "->", len(unique))
print(unique)
print("domains:", ", ".join({e.split("@")[1] for e in emails}))
numbered = {e: i for i, e in enumerate(set(emails))}
numbered
