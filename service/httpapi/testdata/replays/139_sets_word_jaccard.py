def shingles(s, n=3):
    return {s[i:i + n] for i in range(len(s) - n + 1)}
names = ["Jonathan Smith", "Jonathon Smyth", "Johnny Smithe", "Maria Garcia", "Marie Garcia"]
sims = {}
for i, a in enumerate(names):
    for b in names[i + 1:]:
        A, B = shingles(a), shingles(b)
        sims[a, b] = len(A & B) / len(A | B)
for (a, b), s in sorted(sims.items(), key=lambda kv: -kv[1])[:4]:
    print(f"{s:.3f} {a} ~ {b}; shared {list(shingles(a) & shingles(b))[:4]}")
