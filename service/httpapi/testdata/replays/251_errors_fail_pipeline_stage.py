import json
import logging
import random

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True)
log = logging.getLogger("pipeline")


class StageError(Exception):
    def __init__(self, stage, record, cause):
        super().__init__(f"stage {stage!r} failed on record {record.get('id')}")
        self.stage, self.record = stage, record
        self.__cause__ = cause


def parse(r):
    return {**r, "amount": float(r["amount"])}


def convert(r):
    rates = {"EUR": 1.0, "USD": 0.92, "GBP": 1.17}
    return {**r, "eur": r["amount"] * rates[r["currency"]]}


def check(r):
    assert r["eur"] > 0, f"amount {r['eur']}"
    return r


STAGES = [("parse", parse), ("convert", convert), ("check", check)]


def run(record):
    for name, fn in STAGES:
        try:
            record = fn(record)
        except Exception as e:
            raise StageError(name, record, e)
    return record


data = [{"id": i, "amount": f"{random.uniform(1, 90):.2f}", "currency": random.choice(["EUR", "USD", "GBP"])} for i in range(6)]
data.append({"id": 99, "amount": "12.00", "currency": "CHF"})
total = 0.0
for r in data:
    out = run(r)
    total += out["eur"]
    log.info("record %s gives %.2f EUR", out["id"], out["eur"])
    print(json.dumps(out))
print("total", total)
