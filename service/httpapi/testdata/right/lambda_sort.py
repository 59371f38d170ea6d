# why: nearest
targets = [12, 47, 80]
points = [10, 45, 52, 79, 90]
nearest = {}
for target in targets:
    nearest[target] = min(points, key=lambda p: abs(p - target))
ordered = sorted(nearest.items(), key=lambda pair: pair[1] - pair[0])
gap = ordered[-1]
text = ", ".join(f"{a}->{b}" for a, b in nearest.items())
