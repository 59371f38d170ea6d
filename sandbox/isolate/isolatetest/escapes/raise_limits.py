# family: kernel
# tries: to raise its own limits
# invariant: 10
# layers: seccomp, user, capabilities, uid
# needs: CAP_SYS_RESOURCE

import resource

resource.setrlimit(resource.RLIMIT_NOFILE, (5000, 5000))
"escaped"
