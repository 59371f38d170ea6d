# why: distance
from collections import deque
graph = {"a": ["b", "c"], "b": ["d"], "c": ["d", "e"], "d": ["f"], "e": ["f"], "f": []}
distance = {"a": 0}
queue = deque(["a"])
while queue:
    here = queue.popleft()
    for there in graph[here]:
        if there not in distance:
            distance[there] = distance[here] + 1
            queue.append(there)
far = max(distance.values())
