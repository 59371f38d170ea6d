/* Repeatable inputs of a run: inputs.c. */
#ifndef INPUTS_H
#define INPUTS_H

#include "batch.h"

#include <sys/stat.h>
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

/* Replaces a function of the C library. Its name here is another: headers may make stat a name of stat64, which has the
 * same parameters on 64-bit machines. */
#define REPLACE(result, name, parameters)                                                                              \
    static result(*next_##name) parameters;                                                                            \
    __attribute__((constructor)) static void find_##name(void) { find_next(#name, &next_##name); }                     \
    EXPORTED result our_##name parameters __asm__(#name);                                                              \
    result our_##name parameters

/* A library may call it as it is loaded, before the constructors of this one. */
#define NEXT(name) (__builtin_expect(!next_##name, 0) ? find_##name() : (void)0, next_##name)

/* Tells whether the thread of the run holds Python's GIL. It does not if another thread holds it. */
int holds_gil(void);

int is_replay(void);

/* Returns the next reading of a clock, which is pending then. real is that of the real clock, which a replay uses if
 * the log has no readings of this clock at all. */
int64_t read_input(int clock, int64_t real);

/* Counts the pending reading. */
void commit(void);

/* Does not count the pending reading if it is of this clock. */
void drop_pending(int clock);

/* Moves the clocks forward of which the log has no more readings, because a replay has slept or waited. Without this, a
 * loop that waits for a time would never end. */
void pass_time(int64_t nanoseconds);

/* Sets the last reading of a clock that counts. Returns whether a replay has one from its log. */
int last_reading(int clock, int64_t *reading);

/* clock_gettime and fstat of the C library. */
int read_real_clock(clockid_t id, struct timespec *t);
int read_real_stat(int fd, struct stat *s);

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

/* Tells whether the process has another thread of Python, which a sleep of this one may wait for. */
int has_other_threads(void);

/* Tells whether the code of a run may start a thread in this thread, which is that of the run or another. */
int has_run(void);
void note_thread(void);

#endif
