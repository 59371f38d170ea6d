import re
from collections import Counter
rows = await db_query("SELECT content FROM pipeline_input")
text = [re.sub(r"\(ticket \d+\)", "", r["content"] or "(empty)").strip() for r in rows]
c = Counter(text)
for t, n in c.most_common(5):
    print(n, t)
words = Counter(w for t in text for w in set(re.findall(r"[a-z]{4,}", t.lower())))
print(words.most_common(8))
rare = {w for w, n in words.items() if n == min(words.values())}
rare
