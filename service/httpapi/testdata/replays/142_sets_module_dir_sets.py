import string, math
public = {n for n in dir(math) if not n.startswith("_")}
short = {n for n in public if len(n) <= 3}
print(short)
print(list(public)[:5])
letters = set(string.ascii_lowercase[:8])
print("".join(letters))
vars_now = {k for k in ("public", "short", "letters")}
vars_now
