import random
random.seed(None)
N, BITS = 30, 24
pop = [[random.getrandbits(1) for _ in range(BITS)] for _ in range(N)]
for gen in range(200):
    pop.sort(key=sum, reverse=True)
    if sum(pop[0]) == BITS:
        break
    parents = pop[:10]
    pop = parents[:2] + [
        [random.choice(pair) ^ (random.random() < .02) for pair in zip(*random.sample(parents, 2))]
        for _ in range(N - 2)]
print("generation", gen, "best", sum(pop[0]))
"".join(str(int(b)) for b in pop[1])
