class Sensor:
    pass
s = Sensor()
print("reading", s)
raise ValueError(f"sensor {s!r} gave no value at {id(s):#x}")
