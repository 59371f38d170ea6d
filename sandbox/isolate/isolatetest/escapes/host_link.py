# family: files
# tries: to read a file of the machine through a link in /session
# invariant: 15
# layers: root
# proof: secret

import os

os.symlink(public_file, "/session/link")
open("/session/link").read()
