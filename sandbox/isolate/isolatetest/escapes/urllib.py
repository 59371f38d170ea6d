# family: network
# tries: to fetch a page by the standard library
# invariant: 7
# layers: seccomp, network, landlock
# proof: arrived

import urllib.request

try:
    urllib.request.urlopen(f"http://127.0.0.1:{port}/{nonce}", timeout=2)
except urllib.error.URLError:
    raise
except Exception:
    pass  # the answer is not HTTP
"escaped"
