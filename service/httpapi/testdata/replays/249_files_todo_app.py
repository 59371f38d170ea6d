import json
import uuid
from pathlib import Path
from datetime import datetime, timedelta


class Store:
    def __init__(self, path):
        self.path = Path(path)
        self.items = json.loads(self.path.read_text()) if self.path.exists() else {}

    def save(self):
        tmp = self.path.with_suffix(".tmp")
        tmp.write_text(json.dumps(self.items, indent=1))
        tmp.replace(self.path)

    def add(self, text, days=0, tags=()):
        key = uuid.uuid4().hex[:6]
        due = datetime.now() + timedelta(days=days)
        self.items[key] = {"text": text, "due": due.isoformat(timespec="seconds"), "done": False, "tags": list(set(tags))}
        self.save()
        return key

    def finish(self, key):
        self.items[key]["done"] = True
        self.items[key]["finished"] = datetime.now().isoformat()
        self.save()

    def open(self):
        return sorted((i["due"], k) for k, i in self.items.items() if not i["done"])


todo = Store("todo.json")
a = todo.add("write the report", 2, ["work", "writing", "urgent"])
b = todo.add("buy milk", 0, ["home"])
c = todo.add("call the bank", 1, ["home", "phone"])
todo.finish(b)

again = Store("todo.json")
for due, key in again.open():
    item = again.items[key]
    print(key, due, item["text"], item["tags"])
print(again.items[b])
try:
    again.finish("nothing")
except KeyError as e:
    print("no such item:", e)
print(Path("todo.json").stat().st_size, Path("todo.tmp").exists(), again)
sorted(again.items) == sorted([a, b, c])
