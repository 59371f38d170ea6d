/* The times of files, made repeatable: inputs.c.
 *
 * A replay repeats the times of files that this process has made or changed, or that came to it, and other files have
 * their real times. A log has these readings for each file whose times the run asks for: its kind, the time of its
 * change, and the times that the kind names. */
#define _GNU_SOURCE
#include "inputs.h"

/* The times of a file that are not that of its change. */
enum { IS_MODIFIED = 1, IS_ACCESSED = 2, IS_CREATED = 4 };

struct times {
    int64_t changed, modified, accessed, created; /* nanoseconds */
};

static int kind_of(const struct times *t)
{
    return (t->modified != t->changed) * IS_MODIFIED | (t->accessed != t->changed) * IS_ACCESSED
           | (t->created != t->changed) * IS_CREATED;
}

static void log_times(const struct times *t)
{
    int kind = kind_of(t);
    log_reading(FILE_KIND, kind);
    log_reading(FILE_CHANGED, t->changed);
    if (kind & IS_MODIFIED)
        log_reading(FILE_MODIFIED, t->modified);
    if (kind & IS_ACCESSED)
        log_reading(FILE_ACCESSED, t->accessed);
    if (kind & IS_CREATED)
        log_reading(FILE_CREATED, t->created);
}

/* Returns 0 if the log has no more times, or is malformed. */
static int take_times(struct times *t)
{
    int64_t kind;
    struct times got;
    if (!take_reading(FILE_KIND, &kind) || !take_reading(FILE_CHANGED, &got.changed))
        return 0;
    got.modified = got.accessed = got.created = got.changed;
    if ((kind & IS_MODIFIED && !take_reading(FILE_MODIFIED, &got.modified))
        || (kind & IS_ACCESSED && !take_reading(FILE_ACCESSED, &got.accessed))
        || (kind & IS_CREATED && !take_reading(FILE_CREATED, &got.created)))
        return 0;
    *t = got;
    return 1;
}

static int64_t moved(int64_t time, int64_t by)
{
    int64_t sum;
    return __builtin_add_overflow(time, by, &sum) ? time : sum;
}

/* Makes the times of a file repeatable. Returns whether it has changed them. */
static int repeat_times(struct times *t)
{
    switch (begin_file(t->changed)) {
    case FILE_REAL:
        return 0;
    case FILE_LOGGED:
        log_times(t);
        return 0;
    case FILE_REPLAYED:
        break;
    }
    if (take_times(t))
        return 1;
    int64_t by = miss_file();
    *t = (struct times){moved(t->changed, by), moved(t->modified, by), moved(t->accessed, by), moved(t->created, by)};
    return 1;
}

#define SET_TIME(to, nanoseconds)                                                                                      \
    ((to)->tv_nsec = ((nanoseconds) % NANOSECONDS + NANOSECONDS) % NANOSECONDS,                                        \
     (to)->tv_sec = (nanoseconds) / NANOSECONDS - ((nanoseconds) % NANOSECONDS < 0))

static void repeat_stat(struct timespec *changed, struct timespec *modified, struct timespec *accessed)
{
    struct times t = {in_nanoseconds(changed), in_nanoseconds(modified), in_nanoseconds(accessed), 0};
    t.created = t.changed;
    if (!repeat_times(&t))
        return;
    SET_TIME(changed, t.changed);
    SET_TIME(modified, t.modified);
    SET_TIME(accessed, t.accessed);
}

#define REPLACE_STAT(name, parameters, ...)                                                                            \
    REPLACE(int, name, parameters)                                                                                     \
    {                                                                                                                  \
        int failed = NEXT(name)(__VA_ARGS__);                                                                          \
        if (!failed && is_active)                                                                                      \
            repeat_stat(&s->st_ctim, &s->st_mtim, &s->st_atim);                                                        \
        return failed;                                                                                                 \
    }

REPLACE_STAT(stat, (const char *restrict path, struct stat *restrict s), path, s)
REPLACE_STAT(lstat, (const char *restrict path, struct stat *restrict s), path, s)
REPLACE_STAT(fstat, (int fd, struct stat *s), fd, s)
REPLACE_STAT(fstatat, (int folder, const char *restrict path, struct stat *restrict s, int flags), folder, path, s,
             flags)
REPLACE_STAT(stat64, (const char *restrict path, struct stat *restrict s), path, s)
REPLACE_STAT(lstat64, (const char *restrict path, struct stat *restrict s), path, s)
REPLACE_STAT(fstat64, (int fd, struct stat *s), fd, s)
REPLACE_STAT(fstatat64, (int folder, const char *restrict path, struct stat *restrict s, int flags), folder, path, s,
             flags)

int read_real_stat(int fd, struct stat *s)
{
    return NEXT(fstat64)(fd, s);
}

/* What programs call that were built with a C library before 2.33. */
REPLACE_STAT(__xstat, (int version, const char *path, struct stat *s), version, path, s)
REPLACE_STAT(__lxstat, (int version, const char *path, struct stat *s), version, path, s)
REPLACE_STAT(__fxstat, (int version, int fd, struct stat *s), version, fd, s)
REPLACE_STAT(__fxstatat, (int version, int folder, const char *path, struct stat *s, int flags), version, folder, path,
             s, flags)
REPLACE_STAT(__xstat64, (int version, const char *path, struct stat *s), version, path, s)
REPLACE_STAT(__lxstat64, (int version, const char *path, struct stat *s), version, path, s)
REPLACE_STAT(__fxstat64, (int version, int fd, struct stat *s), version, fd, s)
REPLACE_STAT(__fxstatat64, (int version, int folder, const char *path, struct stat *s, int flags), version, folder,
             path, s, flags)

static int64_t of_statx(const struct statx_timestamp *t)
{
    return in_nanoseconds(&(struct timespec){t->tv_sec, t->tv_nsec});
}

REPLACE(int, statx, (int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict s))
{
    int failed = NEXT(statx)(folder, path, flags, mask, s);
    if (failed || !is_active || !(s->stx_mask & STATX_CTIME))
        return failed;
    struct times t = {of_statx(&s->stx_ctime), of_statx(&s->stx_mtime), of_statx(&s->stx_atime), 0};
    t.created = s->stx_mask & STATX_BTIME ? of_statx(&s->stx_btime) : t.changed;
    if (!repeat_times(&t))
        return 0;
    SET_TIME(&s->stx_ctime, t.changed);
    SET_TIME(&s->stx_mtime, t.modified);
    SET_TIME(&s->stx_atime, t.accessed);
    if (s->stx_mask & STATX_BTIME)
        SET_TIME(&s->stx_btime, t.created);
    return 0;
}
