# family: secrets
# tries: to read what a program of the machine shares in /dev/shm
# invariant: 8
# layers: root
# proof: secret

open(shm_file).read()
