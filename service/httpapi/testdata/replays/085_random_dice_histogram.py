import random
from collections import Counter

rolls = [random.randint(1, 6) + random.randint(1, 6) for _ in range(2000)]
c = Counter(rolls)
for total in range(2, 13):
    print(f"{total:>2} {c[total]:>4} {'#' * (c[total] // 10)}")
print("mean", sum(rolls) / len(rolls))
