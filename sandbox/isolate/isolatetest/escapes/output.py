# family: exhaustion
# tries: to make the service keep eight megabytes of output
# invariant: 16
# layers: max_output_size
# proof: output

for _ in range(128):
    print("x" * 65535)
"escaped"
