/* The clocks of the C library, and what takes time, made repeatable: inputs.c. */
#define _GNU_SOURCE
#include "inputs.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>

static __attribute__((noinline)) int read_clock(clockid_t id, struct timespec *t)
{
    int failed = read_real_clock(id, t);
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

REPLACE(int, clock_gettime, (clockid_t id, struct timespec *t))
{
    if (__builtin_expect(is_active, 0))
        return read_clock(id, t);
    return NEXT(clock_gettime)(id, t);
}

int read_real_clock(clockid_t id, struct timespec *t)
{
    return NEXT(clock_gettime)(id, t);
}

/* Python does not call the following functions to wait. Libraries call them, which may have released the GIL. */

static void read_timeval(int clock, struct timeval *t)
{
    int64_t reading = read_input(clock, t->tv_sec * NANOSECONDS + t->tv_usec * 1000);
    t->tv_sec = reading / NANOSECONDS;
    t->tv_usec = reading % NANOSECONDS / 1000;
}

REPLACE(int, gettimeofday, (struct timeval *restrict t, void *restrict zone))
{
    int failed = NEXT(gettimeofday)(t, zone);
    if (!failed && is_active)
        read_timeval(GETTIMEOFDAY, t);
    return failed;
}

REPLACE(time_t, time, (time_t *t))
{
    time_t now = NEXT(time)(NULL);
    if (is_active)
        now = read_input(TIME, now * NANOSECONDS) / NANOSECONDS;
    if (t)
        *t = now;
    return now;
}

REPLACE(int, getrusage, (__rusage_who_t who, struct rusage *usage))
{
    int failed = NEXT(getrusage)(who, usage);
    if (!failed && is_active && who == RUSAGE_SELF) {
        read_timeval(GETRUSAGE_USER, &usage->ru_utime);
        read_timeval(GETRUSAGE_SYSTEM, &usage->ru_stime);
    }
    return failed;
}

/* -- sleeps */

REPLACE(int, clock_nanosleep, (clockid_t id, int flags, const struct timespec *t, struct timespec *left))
{
    if (!is_active || !is_replay() || id < 0 || id >= LINUX_CLOCKS || t->tv_nsec < 0 || t->tv_nsec >= NANOSECONDS)
        return NEXT(clock_nanosleep)(id, flags, t, left);
    commit();
    int64_t nanoseconds = in_nanoseconds(t);
    if (flags & TIMER_ABSTIME) { /* of the clock of the replay */
        struct timespec now;
        int64_t last;
        if (last_reading(id, &last))
            nanoseconds -= last;
        else if (NEXT(clock_gettime)(id, &now) == 0)
            nanoseconds -= in_nanoseconds(&now);
    }
    if (nanoseconds <= 0)
        return 0;
    if (has_other_threads()) {
        struct timespec real = {nanoseconds / NANOSECONDS, nanoseconds % NANOSECONDS};
        int error = NEXT(clock_nanosleep)(CLOCK_MONOTONIC, 0, &real, flags & TIMER_ABSTIME ? NULL : left);
        if (error)
            return error;
    }
    pass_time(nanoseconds);
    return 0;
}

REPLACE(int, nanosleep, (const struct timespec *t, struct timespec *left))
{
    if (!is_active || !is_replay())
        return NEXT(nanosleep)(t, left);
    int error = our_clock_nanosleep(CLOCK_REALTIME, 0, t, left);
    if (!error)
        return 0;
    errno = error;
    return -1;
}

/* -- waits: they take as long as in any run. If one times out in a replay, the clocks must move on past their logs. */

REPLACE(int, epoll_wait, (int fd, struct epoll_event *events, int max_events, int timeout))
{
    int n = NEXT(epoll_wait)(fd, events, max_events, timeout);
    if (n == 0 && is_active && is_replay())
        pass_time(timeout * 1000000ll);
    return n;
}

REPLACE(int, poll, (struct pollfd *fds, nfds_t count, int timeout))
{
    int n = NEXT(poll)(fds, count, timeout);
    if (n == 0 && is_active && is_replay())
        pass_time(timeout * 1000000ll);
    return n;
}

REPLACE(int, select,
        (int count, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e, struct timeval *restrict t))
{
    int64_t microseconds = t && t->tv_sec < INT32_MAX ? t->tv_sec * 1000000ll + t->tv_usec : 0; /* select changes t */
    int n = NEXT(select)(count, r, w, e, t);
    if (n == 0 && is_active && is_replay())
        pass_time(microseconds * 1000);
    return n;
}

/* -- locks */

/* Drops the pending reading if it is the one that Python has made, with the GIL, before it takes a lock. */
static void drop_reading_of_lock(void)
{
#if defined(HAVE_SEM_CLOCKWAIT) && PY_VERSION_HEX < 0x030E0000
    if (is_active && holds_gil())
        drop_pending(CLOCK_MONOTONIC);
#endif
}

REPLACE(int, sem_trywait, (sem_t *semaphore))
{
    drop_reading_of_lock();
    return NEXT(sem_trywait)(semaphore);
}

REPLACE(int, sem_wait, (sem_t *semaphore))
{
    drop_reading_of_lock();
    return NEXT(sem_wait)(semaphore);
}

/* Python waits without the GIL, until a time that it has read without the GIL: it is of the real clock. */
REPLACE(int, sem_clockwait, (sem_t *restrict semaphore, clockid_t id, const struct timespec *restrict until))
{
    struct timespec before;
    drop_reading_of_lock();
    if (!is_active || !is_replay() || NEXT(clock_gettime)(id, &before))
        return NEXT(sem_clockwait)(semaphore, id, until);
    int failed = NEXT(sem_clockwait)(semaphore, id, until);
    if (failed && errno == ETIMEDOUT)
        pass_time(in_nanoseconds(until) - in_nanoseconds(&before));
    return failed;
}
