import json
class E(json.JSONEncoder):
    def default(self, o):
        if isinstance(o, (set, frozenset)):
            return list(o)
        return super().default(o)
cfg = {"tags": {"prod", "eu-west", "critical", "db"}, "owners": frozenset(["ops", "data"]), "n": 3}
s = json.dumps(cfg, cls=E)
print(s)
print(len(s), hash(s) % 1000)
