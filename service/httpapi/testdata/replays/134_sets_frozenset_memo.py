from functools import lru_cache

@lru_cache(maxsize=None)
def count_ways(remaining):
    if not remaining:
        return 1
    trace.append(next(iter(remaining)))
    return sum(count_ways(remaining - {x}) for x in remaining)

trace = []
print(count_ways(frozenset({"ada", "bob", "cleo", "dan"})))
print(trace)
print(count_ways.cache_info())
