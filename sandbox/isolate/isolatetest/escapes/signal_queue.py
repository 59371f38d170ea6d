# family: exhaustion
# tries: to make the kernel hold a thousand signals
# invariant: 10
# layers: rlimits

import os
import signal

number = signal.SIGRTMIN + 5
signal.pthread_sigmask(signal.SIG_BLOCK, [number])
for _ in range(1000):
    os.kill(os.getpid(), number)
held = 0
while signal.sigtimedwait([number], 0):
    held += 1
if held < 500:
    raise OSError(f"the kernel kept {held} signals")
"escaped"
