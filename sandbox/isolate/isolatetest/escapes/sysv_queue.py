# family: secrets
# tries: to take a message from a queue of the machine
# invariant: 8
# layers: seccomp, ipc
# proof: secret

buffer = ctypes.create_string_buffer(128)
call(70, call(68, queue_key, 0), buffer, 64, 0, 0o4000)
buffer.raw[8:72].decode("ascii", "replace")
