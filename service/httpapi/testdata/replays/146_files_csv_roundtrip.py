import csv

rows = [["name", "city", "amount"], ["Müller", "Köln", "12.50"], ["O'Neil", "Cork", "7"], ['say "hi"', "a,b", "0"]]
with open("out.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows(rows)
with open("out.csv", encoding="utf-8") as f:
    raw = f.read()
print(raw)
with open("out.csv", newline="", encoding="utf-8") as f:
    back = list(csv.DictReader(f))
print(back[2])
sum(float(r["amount"]) for r in back)
