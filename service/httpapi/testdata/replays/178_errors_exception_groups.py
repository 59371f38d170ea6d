def job(n):
    if n % 2:
        raise ValueError(f"odd {n}")
    if n == 4:
        raise TypeError("four")
    return n
errs, oks = [], []
for n in range(6):
    try:
        oks.append(job(n))
    except Exception as e:
        errs.append(e)
try:
    raise ExceptionGroup("batch", errs)
except* ValueError as g:
    print("values:", [str(e) for e in g.exceptions])
except* TypeError as g:
    print("types:", g.exceptions)
oks
