# family: stuck
# tries: to run past its time in one C call, which no interrupt reaches
# invariant: 11
# layers: max_execution_time

import itertools

sum(itertools.repeat(1, 600_000_000))
"escaped"
