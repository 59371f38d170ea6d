/* Repeatable inputs of a run: clocks and randomness in inputs.c, files in input_files.c, threads in input_threads.c. */
#ifndef INPUTS_H
#define INPUTS_H

#include "batch.h"

#include <time.h>

/* Tells whether this library is preloaded, so that its functions replace those of the C library. */
int has_inputs(void);

PyObject *begin_inputs(PyObject *module, PyObject *args);
PyObject *end_inputs(PyObject *module, PyObject *unused);
PyObject *pause_inputs(PyObject *module, PyObject *unused);
PyObject *resume_inputs(PyObject *module, PyObject *was_active);
PyObject *note_start(PyObject *module, PyObject *unused);
PyObject *started_threads(PyObject *module, PyObject *unused);

/* -- what the files share */

#define EXPORTED __attribute__((visibility("default")))
#define NANOSECONDS 1000000000ll

/* The clocks in a log: first those of Linux, by their ids, then those of other functions of the C library, and then
 * the times of files. */
enum {
    NO_CLOCK = -1, LINUX_CLOCKS = 12, GETTIMEOFDAY = 12, TIME, GETRUSAGE_USER, GETRUSAGE_SYSTEM,
    FILE_KIND, FILE_CHANGED, FILE_MODIFIED, FILE_ACCESSED, FILE_CREATED, CLOCKS
};

/* Whether this thread is that of a run whose inputs are not paused. The preloaded library may use the fastest model. */
extern __thread int is_active __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Sets *function to the function that this library replaces, or to NULL if the C library lacks it. */
void find_next(const char *name, void *function);

/* Logs a reading of an original run. */
void log_reading(int clock, int64_t reading);

/* Takes a reading of a replay from its log. Returns 0 if there is none. */
int take_reading(int clock, int64_t *reading);

int64_t in_nanoseconds(const struct timespec *t);

/* Where the times of a file come from. */
enum file_mode { FILE_REAL, FILE_LOGGED, FILE_REPLAYED };

/* Begins to read the times of a file that was changed at a time. */
enum file_mode begin_file(int64_t changed);

/* Counts that a log lacks the times of a file. Returns the nanoseconds from its real times to those of the replay. */
int64_t miss_file(void);

/* Tells whether this thread has the randomness of a run, of which take_random_bytes takes the next bytes. */
int has_random_bytes(void);
void take_random_bytes(void *to, size_t size);

/* Tells whether the code of a run may start a thread in this thread, which is that of the run or another. */
int has_run(void);
void note_thread(void);

#endif
