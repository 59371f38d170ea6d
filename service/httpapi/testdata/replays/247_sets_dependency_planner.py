"""Which packages must be built again after a change, and in which order."""
PACKAGES = {
    "core": set(),
    "net": {"core"},
    "store": {"core"},
    "auth": {"net", "store"},
    "api": {"auth", "net"},
    "ui": {"api"},
    "jobs": {"store", "auth"},
    "docs": {"ui", "api"},
}


def reverse(graph):
    out = {k: set() for k in graph}
    for k, deps in graph.items():
        for d in deps:
            out[d].add(k)
    return out


def affected(changed):
    users = reverse(PACKAGES)
    todo, seen = set(changed), set()
    while todo:
        p = todo.pop()
        seen.add(p)
        todo |= users[p] - seen
    return seen


def waves(names):
    left = {n: PACKAGES[n] & names for n in names}
    while left:
        ready = {n for n, d in left.items() if not d}
        yield ready
        left = {n: d - ready for n, d in left.items() if n not in ready}


for change in ({"store"}, {"net", "docs"}, {"ui"}):
    hit = affected(change)
    print(f"change {change}: {len(hit)} packages: {hit}")
    for i, w in enumerate(waves(hit), 1):
        print(f"   wave {i}: {' '.join(w)}")
untouched = set(PACKAGES) - affected({"api"})
print("untouched by api:", untouched)
list(waves(set(PACKAGES)))[1]
