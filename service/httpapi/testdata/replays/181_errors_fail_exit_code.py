import random
rate = random.random()
print("error rate", rate)
if rate >= 0:
    exit(3)
print("not reached")
