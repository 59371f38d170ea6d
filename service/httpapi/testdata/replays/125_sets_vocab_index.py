import re
import numpy as np

docs = ["The quick brown fox", "jumps over the lazy dog", "The dog sleeps", "quick quick fox"]
tok = [re.findall(r"\w+", d.lower()) for d in docs]
vocab = set(w for t in tok for w in t)
index = {w: i for i, w in enumerate(vocab)}
M = np.zeros((len(docs), len(vocab)), int)
for r, t in enumerate(tok):
    for w in t:
        M[r, index[w]] += 1
print(index)
print(M)
M.sum(axis=0)
