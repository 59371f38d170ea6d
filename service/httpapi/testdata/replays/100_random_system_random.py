import random
sr = random.SystemRandom()
print([sr.randrange(100) for _ in range(8)])
print(sr.choice(["heads", "tails"]))
print(sr.uniform(0, 1))
lottery = sorted(sr.sample(range(1, 50), 6))
lottery
