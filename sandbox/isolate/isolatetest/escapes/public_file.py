# family: secrets
# tries: to read a file of the machine that anybody may read
# invariant: 8
# layers: root
# proof: secret

open(public_file).read()
