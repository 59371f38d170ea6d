# why: mean
raw = ["12", "7", "n/a", "19", "", "3", "unknown", "25"]
values, skipped = [], []
for text in raw:
    try:
        values.append(float(text))
    except ValueError:
        skipped.append(text)
mean = sum(values) / len(values)
values.sort()
middle = len(values) // 2
median = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
