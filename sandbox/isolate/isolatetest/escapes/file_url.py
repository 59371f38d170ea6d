# family: python
# tries: to read a file of the machine by a file: URL
# invariant: 8
# layers: root
# proof: secret

import urllib.request

urllib.request.urlopen("file://" + public_file).read().decode()
