# family: secrets
# tries: to read the service's environment from memory, without Python's os.environ
# invariant: 3
# layers: environment
# proof: secret

pointers = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
found = []
while pointers[len(found)]:
    found.append(pointers[len(found)].decode("utf-8", "replace"))
found
