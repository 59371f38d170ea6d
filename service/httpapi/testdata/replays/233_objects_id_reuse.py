a = [1, 2, 3]
b = a
c = list(a)
print(id(a) == id(b), id(a) == id(c), id(a))
del c
d = [9]
print(hex(id(d)))
print(id(object()) == id(object()))
x, y = 256, int("256")
print(x is y, 257 is int("257"), "ab" is "".join(["a", "b"]))
