stop = set("a an the and or of to in is it".split())
text = "It is the end of the beginning and the beginning of an end to remember in time"
kept = {w for w in text.lower().split() if w not in stop}
print("kept:", kept)
print("dropped:", stop & set(text.lower().split()))
print("longest:", max(kept, key=len))
print("|".join(kept))
