/* The inputs of a run that differ each time, its clocks and its randomness, made repeatable.
 *
 * This library is in LD_PRELOAD, so the functions below replace those of the C library. Outside of a run, and in each
 * thread but that of the run, they call the ones of the C library.
 *
 * An original run logs each reading of a clock, and a repeated run reads the clocks from that log. The times of files
 * are readings, too: input_files.c. A log is a sequence of varints, in entries:
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
#include <poll.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    CPU_CLOCKS = 1 << CLOCK_PROCESS_CPUTIME_ID | 1 << CLOCK_THREAD_CPUTIME_ID | 1 << GETRUSAGE_USER
                 | 1 << GETRUSAGE_SYSTEM
};
enum { MAX_READINGS = 1 << 16, MAX_LOG_BYTES = 256 << 10, SMALL_LOG_BYTES = 2900, MAX_ENTRY_BYTES = 16 };
enum { SEED_BYTES = 32, MAX_ENTROPY_BYTES = 256 /* of getentropy */ };
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

/* -- the functions of the C library */

static struct {
    int (*clock_gettime)(clockid_t, struct timespec *);
    int (*gettimeofday)(struct timeval *, void *);
    time_t (*time)(time_t *);
    int (*getrusage)(__rusage_who_t, struct rusage *);
    ssize_t (*getrandom)(void *, size_t, unsigned);
    int (*getentropy)(void *, size_t);
    int (*clock_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
    int (*nanosleep)(const struct timespec *, struct timespec *);
    long (*syscall)(long, ...);
    int (*epoll_wait)(int, struct epoll_event *, int, int);
    int (*poll)(struct pollfd *, nfds_t, int);
    int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
    int (*sem_trywait)(sem_t *);
    int (*sem_wait)(sem_t *);
    int (*sem_clockwait)(sem_t *, clockid_t, const struct timespec *);
} libc;

/* The function of the C library. The first call looks it up: libraries call some of them as they are loaded. */
#define LIBC(name) (__builtin_expect(!libc.name, 0) ? find(#name, &libc.name) : (void)0, libc.name)

void find_next(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

static void find(const char *name, void *function)
{
    find_next(name, function);
    if (!*(void **)function) /* this C library lacks it, so nobody can have linked with it */
        abort();
}

/* A guest that looked them up itself would write to a page of its own. */
__attribute__((constructor)) static void find_all(void)
{
    (void)LIBC(clock_gettime), (void)LIBC(gettimeofday), (void)LIBC(time), (void)LIBC(getrandom);
    (void)LIBC(getentropy), (void)LIBC(clock_nanosleep), (void)LIBC(nanosleep), (void)LIBC(syscall);
    (void)LIBC(epoll_wait), (void)LIBC(poll), (void)LIBC(select);
    (void)LIBC(sem_trywait), (void)LIBC(sem_wait), (void)LIBC(getrusage);
}

/* -- readings */

static int holds_gil(void)
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

/* Counts the pending reading. */
static void commit(void)
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

/* Returns the next reading of a clock, which is pending then. real is that of the real clock, which a replay uses if
 * the log has no readings of this clock at all. */
static int64_t read_input(int clock, int64_t real)
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

/* Moves the clocks forward of which the log has no more readings, because a replay has slept or waited. Without this, a
 * loop that waits for a time would never end. */
static void pass_time(int64_t nanoseconds)
{
    commit();
    for (int clock = 0; clock < CLOCKS; clock++) {
        struct clock *c = &run.clocks[clock];
        if (c->has_last && !(CPU_CLOCKS >> clock & 1) && nanoseconds > 0 && !has_reading(clock))
            c->last = nanoseconds > MAX_READING - c->last ? MAX_READING : c->last + nanoseconds;
    }
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
    if (!run.file_shift && c->has_last && LIBC(clock_gettime)(CLOCK_REALTIME, &now) == 0)
        run.file_shift = c->last - in_nanoseconds(&now); /* it stays, as the times of a file do */
    return run.file_shift;
}

/* -- clocks */

static __attribute__((noinline)) int read_clock(clockid_t id, struct timespec *t)
{
    int failed = LIBC(clock_gettime)(id, t);
    if (failed || id < 0 || id >= LINUX_CLOCKS)
        return failed;
    if (!holds_gil()) {
        commit();
        return 0;
    }
    int64_t reading = read_input(id, in_nanoseconds(t));
    t->tv_sec = reading / NANOSECONDS;
    t->tv_nsec = reading % NANOSECONDS;
    return 0;
}

EXPORTED int clock_gettime(clockid_t id, struct timespec *t)
{
    if (__builtin_expect(is_active, 0))
        return read_clock(id, t);
    return LIBC(clock_gettime)(id, t);
}

/* Python does not call the following functions to wait. Libraries call them, which may have released the GIL. */

static void read_timeval(int clock, struct timeval *t)
{
    int64_t reading = read_input(clock, t->tv_sec * NANOSECONDS + t->tv_usec * 1000);
    t->tv_sec = reading / NANOSECONDS;
    t->tv_usec = reading % NANOSECONDS / 1000;
}

EXPORTED int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    int failed = LIBC(gettimeofday)(t, zone);
    if (!failed && is_active)
        read_timeval(GETTIMEOFDAY, t);
    return failed;
}

EXPORTED time_t time(time_t *t)
{
    time_t now = LIBC(time)(NULL);
    if (is_active)
        now = read_input(TIME, now * NANOSECONDS) / NANOSECONDS;
    if (t)
        *t = now;
    return now;
}

EXPORTED int getrusage(__rusage_who_t who, struct rusage *usage)
{
    int failed = LIBC(getrusage)(who, usage);
    if (!failed && is_active && who == RUSAGE_SELF) {
        read_timeval(GETRUSAGE_USER, &usage->ru_utime);
        read_timeval(GETRUSAGE_SYSTEM, &usage->ru_stime);
    }
    return failed;
}

/* -- sleeps */

/* Tells whether the process has another thread of Python, which a sleep of this one may wait for. */
static int has_other_threads(void)
{
    return run.owner->prev || run.owner->next;
}

EXPORTED int clock_nanosleep(clockid_t id, int flags, const struct timespec *t, struct timespec *left)
{
    if (!is_active || !run.replayed || id < 0 || id >= LINUX_CLOCKS || t->tv_nsec < 0 || t->tv_nsec >= NANOSECONDS)
        return LIBC(clock_nanosleep)(id, flags, t, left);
    commit();
    int64_t nanoseconds = in_nanoseconds(t);
    if (flags & TIMER_ABSTIME) { /* of the clock of the replay */
        struct timespec now;
        if (run.clocks[id].has_last)
            nanoseconds -= run.clocks[id].last;
        else if (LIBC(clock_gettime)(id, &now) == 0)
            nanoseconds -= in_nanoseconds(&now);
    }
    if (nanoseconds <= 0)
        return 0;
    if (has_other_threads()) {
        struct timespec real = {nanoseconds / NANOSECONDS, nanoseconds % NANOSECONDS};
        int error = LIBC(clock_nanosleep)(CLOCK_MONOTONIC, 0, &real, flags & TIMER_ABSTIME ? NULL : left);
        if (error)
            return error;
    }
    pass_time(nanoseconds);
    return 0;
}

EXPORTED int nanosleep(const struct timespec *t, struct timespec *left)
{
    if (!is_active || !run.replayed)
        return LIBC(nanosleep)(t, left);
    int error = clock_nanosleep(CLOCK_REALTIME, 0, t, left);
    if (!error)
        return 0;
    errno = error;
    return -1;
}

/* -- waits: they take as long as in any run. If one times out in a replay, the clocks must move on past their logs. */

EXPORTED int epoll_wait(int fd, struct epoll_event *events, int max_events, int timeout)
{
    int n = LIBC(epoll_wait)(fd, events, max_events, timeout);
    if (n == 0 && is_active && run.replayed)
        pass_time(timeout * 1000000ll);
    return n;
}

EXPORTED int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    int n = LIBC(poll)(fds, count, timeout);
    if (n == 0 && is_active && run.replayed)
        pass_time(timeout * 1000000ll);
    return n;
}

EXPORTED int select(int count, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e, struct timeval *restrict t)
{
    int64_t microseconds = t && t->tv_sec < INT32_MAX ? t->tv_sec * 1000000ll + t->tv_usec : 0; /* select changes t */
    int n = LIBC(select)(count, r, w, e, t);
    if (n == 0 && is_active && run.replayed)
        pass_time(microseconds * 1000);
    return n;
}

/* -- locks */

/* Drops the pending reading if it is the one that Python has made, with the GIL, before it takes a lock. */
static void drop_reading_of_lock(void)
{
#if defined(HAVE_SEM_CLOCKWAIT) && PY_VERSION_HEX < 0x030E0000
    if (is_active && run.pending_clock == CLOCK_MONOTONIC && holds_gil())
        run.pending_clock = NO_CLOCK;
#endif
}

EXPORTED int sem_trywait(sem_t *semaphore)
{
    drop_reading_of_lock();
    return LIBC(sem_trywait)(semaphore);
}

EXPORTED int sem_wait(sem_t *semaphore)
{
    drop_reading_of_lock();
    return LIBC(sem_wait)(semaphore);
}

/* Python waits without the GIL, until a time that it has read without the GIL: it is of the real clock. */
EXPORTED int sem_clockwait(sem_t *restrict semaphore, clockid_t id, const struct timespec *restrict until)
{
    struct timespec before;
    drop_reading_of_lock();
    if (!is_active || !run.replayed || LIBC(clock_gettime)(id, &before))
        return LIBC(sem_clockwait)(semaphore, id, until);
    int failed = LIBC(sem_clockwait)(semaphore, id, until);
    if (failed && errno == ETIMEDOUT)
        pass_time(in_nanoseconds(until) - in_nanoseconds(&before));
    return failed;
}

/* -- randomness */

int has_random_bytes(void)
{
    return is_active && run.has_seed;
}

void take_random_bytes(void *to, size_t size)
{
    chacha_take(&run.randomness, to, size);
}

EXPORTED ssize_t getrandom(void *to, size_t size, unsigned flags)
{
    if (!has_random_bytes())
        return LIBC(getrandom)(to, size, flags);
    take_random_bytes(to, size);
    return size;
}

EXPORTED int getentropy(void *to, size_t size)
{
    if (!has_random_bytes() || size > MAX_ENTROPY_BYTES)
        return LIBC(getentropy)(to, size);
    take_random_bytes(to, size);
    return 0;
}

/* os.getrandom makes the system call itself. */
EXPORTED long syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (is_active && number == SYS_getrandom)
        return getrandom((void *)a[0], a[1], a[2]);
    if (is_active && number == SYS_clock_gettime)
        return clock_gettime(a[0], (struct timespec *)a[1]);
    return LIBC(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* -- threads, for input_threads.c */

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
    run.start = LIBC(clock_gettime)(CLOCK_REALTIME, &now) ? INT64_MAX : in_nanoseconds(&now) - START_MARGIN;
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
