# family: exhaustion
# tries: to make more files than /tmp may have
# invariant: 6
# layers: quota

for n in range(17000):
    open(f"/tmp/{n}", "w").close()
"escaped"
