class ValidationError(Exception):
    def __init__(self, field, value):
        super().__init__(f"invalid {field}: {value!r}")
        self.field, self.value = field, value

def check(row):
    if row["age"] < 0:
        raise ValidationError("age", row["age"])

rows = [{"age": 31}, {"age": -4}]
for r in rows:
    check(r)
    print("ok", r)
