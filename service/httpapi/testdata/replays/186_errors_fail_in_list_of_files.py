from pathlib import Path
import json
for name, text in {"ok.json": '{"a": 1}', "broken.json": '{"a": 1,}', "late.json": "[]"}.items():
    Path(name).write_text(text)
loaded = {}
for p in sorted(Path(".").glob("*.json"), reverse=True):
    loaded[p.name] = json.loads(p.read_text())
    print("loaded", p, loaded[p.name])
