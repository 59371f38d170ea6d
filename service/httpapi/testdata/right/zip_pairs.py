# why: rises
readings = [3, 5, 4, 8, 9, 7]
following = readings[1:]
changes = [b - a for a, b in zip(readings, following)]
rises = 0
for change in changes:
    if change > 0:
        rises += 1
largest = max(changes)
