# family: secrets
# tries: to read a file of root's
# invariant: 8
# layers: root, uid, user
# proof: secret

open(secret_file).read()
