# family: secrets
# tries: to read a file of root's
# invariant: 8
# walls: root, uid
# proof: secret

open(secret_file).read()
