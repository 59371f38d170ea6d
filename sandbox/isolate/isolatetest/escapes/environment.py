# family: secrets
# tries: to read the service's environment
# invariant: 3
# layers: environment
# proof: secret

import os

dict(os.environ)
