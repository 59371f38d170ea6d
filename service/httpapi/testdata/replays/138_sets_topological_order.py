deps = {"app": {"db", "cache", "log"}, "db": {"net", "log"}, "cache": {"net"}, "log": set(), "net": set()}
from graphlib import TopologicalSorter
print("graphlib:", list(TopologicalSorter(deps).static_order()))
done, order = set(), []
def visit(n):
    if n in done:
        return
    for d in deps[n]:
        visit(d)
    done.add(n)
    order.append(n)
for n in deps:
    visit(n)
print("dfs:", order)
