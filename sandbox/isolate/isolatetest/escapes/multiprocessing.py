# family: python
# tries: to fork by the standard library
# invariant: 5
# layers: seccomp

import multiprocessing

process = multiprocessing.get_context("fork").Process(target=int)
process.start()
process.join()
if process.exitcode != 0:
    raise OSError("it did not run")
"escaped"
