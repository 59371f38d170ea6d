import pickle, hashlib, json
cfg = {"features": {"geo", "time", "device", "lang"}, "weights": {w: len(w) for w in {"geo", "time", "device"}}}
blob = pickle.dumps(cfg)
open("cfg.pkl", "wb").write(blob)
print(len(blob), hashlib.sha256(blob).hexdigest()[:20])
back = pickle.loads(open("cfg.pkl", "rb").read())
print(back == cfg, list(back["features"]), list(back["weights"]))
json.dumps(back["weights"])
