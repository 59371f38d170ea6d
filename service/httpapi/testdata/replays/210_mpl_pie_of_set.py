import matplotlib.pyplot as plt
langs = {"python", "go", "rust", "java", "sql"}
sizes = [len(l) for l in langs]
plt.figure(figsize=(4, 4))
plt.pie(sizes, labels=list(langs), autopct="%1.0f%%")
plt.savefig("langs.png")
from pathlib import Path
print(list(langs), Path("langs.png").stat().st_size)
