# family: files
# tries: to leave a file on the machine in a folder that everybody may write to
# invariant: 6
# layers: root, landlock
# proof: changed

with open(f"{open_folder}/{nonce}", "w") as file:
    file.write(nonce)
"escaped"
