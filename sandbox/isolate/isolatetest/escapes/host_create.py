# family: files
# tries: to leave a file on the host where anybody may
# invariant: 6
# layers: root, landlock
# proof: changed

with open(f"{open_folder}/{nonce}", "w") as file:
    file.write(nonce)
"escaped"
