import json
from pathlib import Path

path = Path("config.json")
if path.exists():
    cfg = json.loads(path.read_text())
else:
    cfg = {"runs": 0, "threshold": 0.75, "history": []}
cfg["runs"] += 1
cfg["history"].append({"run": cfg["runs"], "size": len(json.dumps(cfg))})
path.write_text(json.dumps(cfg, indent=2, sort_keys=True))
print(path.read_text())
path.stat().st_size
