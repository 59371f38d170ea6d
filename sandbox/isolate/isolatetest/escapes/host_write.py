# family: files
# tries: to change a file of root's on the machine
# invariant: 6
# layers: root, landlock, uid, user
# proof: changed

with open(target_file, "a") as file:
    file.write(nonce)
"escaped"
