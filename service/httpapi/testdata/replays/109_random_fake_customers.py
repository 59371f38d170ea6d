import random, string, json

first = ["Mia", "Noah", "Lena", "Paul", "Emil", "Ida"]
last = ["Schmidt", "Weber", "Koch", "Wolf", "Braun"]
def phone():
    return "+49 " + "".join(random.choices(string.digits, k=3)) + " " + "".join(random.choices(string.digits, k=7))
customers = []
for i in range(6):
    f, l = random.choice(first), random.choice(last)
    customers.append({"id": i, "name": f"{f} {l}", "email": f"{f}.{l}{random.randint(1, 99)}@example.com".lower(),
                      "phone": phone(), "vip": random.random() < 0.2, "balance": round(random.lognormvariate(5, 1), 2)})
print(json.dumps(customers, indent=1))
max(customers, key=lambda c: c["balance"])["name"]
