import random
from collections import defaultdict

text = """the cat sat on the mat and the dog sat on the log and the cat saw the dog
and the dog saw the cat and they all sat down on the rug by the log"""
chain = defaultdict(list)
words = text.split()
for a, b in zip(words, words[1:]):
    chain[a].append(b)

def babble(n):
    w = random.choice(words)
    out = [w]
    for _ in range(n):
        w = random.choice(chain[w] or words)
        out.append(w)
    return " ".join(out)

for _ in range(3):
    print(babble(12))
