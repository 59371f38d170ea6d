/* The inputs of a run that differ each time, its clocks and its randomness, made repeatable.
 *
 * This library is in LD_PRELOAD, so its functions replace those of the C library: input_clocks.c, input_randomness.c,
 * input_files.c and input_threads.c. Outside of a run, and in each thread but that of the run, they call the ones of
 * the C library.
 *
 * An original run logs each reading of a clock, and a repeated run reads the clocks from that log. The times of files
 * are readings, too. A log is a sequence of varints, in entries:
 *
 *     clock << 1 | has_count   delta   [count - 2]
 *
 * delta, in zigzag form, is the difference in nanoseconds to the reading of this clock before, which is 0 at first. An
 * entry with a count stands for so many readings with the same delta.
 *
 * Some readings of clock_gettime do not count, because no program sees them, and their number depends on other threads
 * and on the recorder: those without the GIL, which Python makes while it waits for the GIL or for a lock, and the one
 * that it makes each time before it takes a lock. So a reading is pending at first. It counts when another reading, a
 * sleep or the end of the run follows, and not if Python takes a lock. */
#define _GNU_SOURCE
#include "inputs.h"
#include "chacha.h"

#include <dlfcn.h>
#include <stddef.h>
#include <sys/mman.h>

enum {
    CPU_CLOCKS = 1 << CLOCK_PROCESS_CPUTIME_ID | 1 << CLOCK_THREAD_CPUTIME_ID | 1 << GETRUSAGE_USER
                 | 1 << GETRUSAGE_SYSTEM
};
enum { MAX_READINGS = 1 << 16, MAX_LOG_BYTES = 256 << 10, SMALL_LOG_BYTES = 2900, MAX_ENTRY_BYTES = 16 };
enum { SEED_BYTES = 32 };
#define STEP 1000ll            /* nanoseconds between two readings past the end of a log */
#define MAX_READING (1ll << 62) /* nanoseconds; it bounds what a forged log can say: the year 2116 */

struct clock {
    int64_t last;   /* reading */
    uint64_t delta; /* of the readings that follow in a replay */
    uint32_t left;  /* number of readings with this delta */
    uint32_t at;    /* where the log goes on for this clock */
    int has_last;
};

/* The state of the run. It is on one page, the only one that an ordinary run writes to. */
static struct {
    PyThreadState *owner; /* of the run, or NULL */
    PyObject *replayed;   /* the log that is replayed, or NULL */
    const uint8_t *from;  /* its bytes */
    size_t from_bytes;
    uint8_t *log; /* of an original run */
    size_t log_bytes, log_capacity;
    uint64_t missing; /* readings that are not in the log */
    int64_t file_shift; /* from the real times of files to those of a replay whose log lacks them */
    uint32_t readings;
    uint32_t threads; /* of Python that have started */
    int is_full, has_seed;
    int pending_clock; /* of the pending reading, or NO_CLOCK */
    int64_t pending;
    int entry_clock; /* of the last entry, which is not in the log yet */
    uint32_t entry_count; /* of it, or 0 */
    uint64_t entry_delta;
    struct clock clocks[CLOCKS];
    struct chacha randomness;
    uint8_t small_log[SMALL_LOG_BYTES];
    int64_t start; /* of the process, in nanoseconds; the next run keeps it */
} run __attribute__((aligned(4096)));

_Static_assert(sizeof run <= 4096, "a run writes to one page");

__thread int is_active;

/* -- readings */

void find_next(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

int holds_gil(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked() == run.owner;
#else
    return _PyThreadState_UncheckedGet() == run.owner;
#endif
}

static void put_varint(uint64_t n)
{
    for (; n > 127; n >>= 7)
        run.log[run.log_bytes++] = n | 128;
    run.log[run.log_bytes++] = n;
}

static void put_entry(void)
{
    if (!run.entry_count)
        return;
    put_varint((uint64_t)run.entry_clock << 1 | (run.entry_count > 1));
    put_varint(run.entry_delta);
    if (run.entry_count > 1)
        put_varint(run.entry_count - 2);
}

/* Moves the log from the page of the run to a mapping. Returns 0 if there is no memory. */
static int grow_log(void)
{
    if (run.log != run.small_log)
        return 0;
    void *got = mmap(NULL, MAX_LOG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return 0;
    memcpy(got, run.log, run.log_bytes);
    run.log = got;
    run.log_capacity = MAX_LOG_BYTES;
    return 1;
}

/* After a reading that is not logged none is, because a delta refers to the one before. */
void log_reading(int clock, int64_t reading)
{
    struct clock *c = &run.clocks[clock];
    int64_t difference = reading - c->last;
    uint64_t delta = (uint64_t)difference << 1 ^ (uint64_t)(difference >> 63);
    int is_same = run.entry_count && run.entry_clock == clock && run.entry_delta == delta;
    if (run.readings >= MAX_READINGS) /* or there is no room for the entry before this one, and for this one */
        run.is_full = 1;
    else if (!is_same && run.log_bytes + 2 * MAX_ENTRY_BYTES > run.log_capacity && !grow_log())
        run.is_full = 1;
    if (run.is_full) {
        run.missing++;
        return;
    }
    run.readings++;
    c->last = reading;
    if (is_same) {
        run.entry_count++;
        return;
    }
    put_entry();
    run.entry_clock = clock;
    run.entry_delta = delta;
    run.entry_count = 1;
}

/* Takes a varint from the log. Returns 0 if there is none, or it has more than 64 bits. */
static int take_varint(size_t *at, uint64_t *n)
{
    *n = 0;
    for (int shift = 0; shift < 64 && *at < run.from_bytes; shift += 7) {
        uint8_t byte = run.from[(*at)++];
        if (shift == 63 && byte > 1)
            return 0;
        *n |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return 1;
    }
    return 0;
}

/* Tells whether the log has another reading of a clock, of which left and delta are set then. A log ends where it is
 * malformed: a guest may have forged it. */
static int has_reading(int clock)
{
    struct clock *c = &run.clocks[clock];
    size_t at = c->at;
    while (!c->left && at < run.from_bytes) {
        uint64_t head, zigzag, more = 0;
        if (!take_varint(&at, &head) || !take_varint(&at, &zigzag) || (head & 1 && !take_varint(&at, &more))
            || more > MAX_READINGS) {
            at = run.from_bytes;
            break;
        }
        if (head >> 1 == (uint64_t)clock) {
            c->left = head & 1 ? more + 2 : 1;
            c->delta = zigzag >> 1 ^ -(zigzag & 1);
        }
    }
    c->at = at;
    return c->left > 0;
}

static int64_t bounded(int64_t reading)
{
    return reading < 0 ? 0 : reading > MAX_READING ? MAX_READING : reading;
}

int take_reading(int clock, int64_t *reading)
{
    struct clock *c = &run.clocks[clock];
    if (!has_reading(clock))
        return 0;
    c->left--;
    *reading = c->last = (uint64_t)c->last + c->delta;
    return 1;
}

void commit(void)
{
    int clock = run.pending_clock;
    run.pending_clock = NO_CLOCK;
    if (clock == NO_CLOCK)
        return;
    if (!run.replayed) {
        log_reading(clock, run.pending);
        return;
    }
    struct clock *c = &run.clocks[clock];
    if (has_reading(clock)) {
        c->left--;
        c->has_last = 1;
    } else {
        run.missing++;
    }
    if (c->has_last)
        c->last = run.pending;
}

int64_t read_input(int clock, int64_t real)
{
    struct clock *c = &run.clocks[clock];
    commit();
    run.pending_clock = clock;
    run.pending = real;
    if (run.replayed && has_reading(clock))
        run.pending = bounded((uint64_t)c->last + c->delta);
    else if (run.replayed && c->has_last)
        run.pending = bounded(c->last + STEP);
    return run.pending;
}

void pass_time(int64_t nanoseconds)
{
    commit();
    for (int clock = 0; clock < CLOCKS; clock++) {
        struct clock *c = &run.clocks[clock];
        if (c->has_last && !(CPU_CLOCKS >> clock & 1) && nanoseconds > 0 && !has_reading(clock))
            c->last = nanoseconds > MAX_READING - c->last ? MAX_READING : c->last + nanoseconds;
    }
}

void drop_pending(int clock)
{
    if (run.pending_clock == clock)
        run.pending_clock = NO_CLOCK;
}

int is_replay(void)
{
    return run.replayed != NULL;
}

int last_reading(int clock, int64_t *reading)
{
    *reading = run.clocks[clock].last;
    return run.clocks[clock].has_last;
}

int64_t in_nanoseconds(const struct timespec *t)
{
    int64_t n;
    if (__builtin_mul_overflow((int64_t)t->tv_sec, NANOSECONDS, &n) || __builtin_add_overflow(n, t->tv_nsec, &n))
        return t->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return n;
}

/* -- the times of files, for input_files.c */

enum file_mode begin_file(int64_t changed)
{
    if (changed < run.start)
        return FILE_REAL;
    commit();
    if (run.replayed)
        return FILE_REPLAYED;
    /* Half of the log is for clocks. */
    if (run.readings <= MAX_READINGS / 2 && run.log_bytes <= MAX_LOG_BYTES / 2)
        return FILE_LOGGED;
    run.missing++;
    return FILE_REAL;
}

int64_t miss_file(void)
{
    struct timespec now;
    const struct clock *c = &run.clocks[CLOCK_REALTIME];
    run.missing++;
    if (!run.file_shift && c->has_last && read_real_clock(CLOCK_REALTIME, &now) == 0)
        run.file_shift = c->last - in_nanoseconds(&now); /* it stays, as the times of a file do */
    return run.file_shift;
}

/* -- randomness, for input_randomness.c */

int has_random_bytes(void)
{
    return is_active && run.has_seed;
}

void take_random_bytes(void *to, size_t size)
{
    chacha_take(&run.randomness, to, size);
}

/* -- threads: input_threads.c, and sleeps */

int has_other_threads(void)
{
    return run.owner->prev || run.owner->next;
}

int has_run(void)
{
    return is_active || (run.owner && !holds_gil()); /* the thread of the run may be paused */
}

void note_thread(void)
{
    __atomic_add_fetch(&run.threads, 1, __ATOMIC_RELAXED);
}

/* -- the functions of the module */

int has_inputs(void)
{
    Dl_info used, own;
    return dladdr(dlsym(RTLD_DEFAULT, "clock_gettime"), &used) && dladdr(&run, &own) && used.dli_fbase == own.dli_fbase;
}

/* Ends the run of this thread, and returns whether there was one. */
static int stop(void)
{
    is_active = 0;
    if (!run.owner || run.owner != PyThreadState_Get())
        return 0;
    commit();
    run.owner = NULL;
    run.from = NULL;
    Py_CLEAR(run.replayed);
    memset(&run.randomness, 0, sizeof run.randomness);
    return 1;
}

static void discard_log(void)
{
    if (run.log && run.log != run.small_log)
        munmap(run.log, MAX_LOG_BYTES);
    run.log = NULL;
}

PyObject *begin_inputs(PyObject *module, PyObject *args)
{
    const char *seed;
    Py_ssize_t seed_bytes;
    PyObject *clock;
    if (!PyArg_ParseTuple(args, "y#O", &seed, &seed_bytes, &clock))
        return NULL;
    if (seed_bytes && seed_bytes != SEED_BYTES)
        return PyErr_Format(PyExc_ValueError, "a seed of %zd bytes, want %d or 0", seed_bytes, SEED_BYTES);
    if (clock != Py_None && (!PyBytes_Check(clock) || PyBytes_GET_SIZE(clock) > UINT32_MAX))
        return PyErr_Format(PyExc_TypeError, "the clock is %s, want bytes or None", Py_TYPE(clock)->tp_name);
    if (run.owner && run.owner != PyThreadState_Get())
        return PyErr_Format(PyExc_RuntimeError, "another thread has begun: it must end first");
    stop();
    discard_log();
    memset(&run, 0, offsetof(__typeof__(run), small_log));
    run.pending_clock = NO_CLOCK;
    run.log = run.small_log;
    run.log_capacity = SMALL_LOG_BYTES;
    if (clock != Py_None) {
        run.replayed = Py_NewRef(clock);
        run.from = (const uint8_t *)PyBytes_AS_STRING(clock);
        run.from_bytes = PyBytes_GET_SIZE(clock);
    }
    run.has_seed = seed_bytes != 0;
    if (run.has_seed)
        chacha_begin(&run.randomness, (const uint8_t *)seed);
    run.owner = PyThreadState_Get();
    is_active = 1;
    Py_RETURN_NONE;
}

PyObject *end_inputs(PyObject *module, PyObject *unused)
{
    if (!stop())
        return Py_BuildValue("(y#i)", "", (Py_ssize_t)0, 0);
    put_entry();
    PyObject *result = Py_BuildValue("(y#K)", run.log, (Py_ssize_t)run.log_bytes, (unsigned long long)run.missing);
    discard_log();
    return result;
}

/* How much older than its process the directories of a session may be. */
#define START_MARGIN (10 * NANOSECONDS)

PyObject *note_start(PyObject *module, PyObject *unused)
{
    struct timespec now;
    run.start = read_real_clock(CLOCK_REALTIME, &now) ? INT64_MAX : in_nanoseconds(&now) - START_MARGIN;
    Py_RETURN_NONE;
}

PyObject *started_threads(PyObject *module, PyObject *unused)
{
    return PyLong_FromUnsignedLong(__atomic_load_n(&run.threads, __ATOMIC_RELAXED));
}

PyObject *pause_inputs(PyObject *module, PyObject *unused)
{
    int was_active = is_active;
    if (was_active)
        commit();
    is_active = 0;
    return PyBool_FromLong(was_active);
}

PyObject *resume_inputs(PyObject *module, PyObject *was_active)
{
    is_active = was_active == Py_True && run.owner && run.owner == PyThreadState_Get();
    Py_RETURN_NONE;
}
