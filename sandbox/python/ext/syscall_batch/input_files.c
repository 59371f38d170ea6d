/* The times of files and the devices of random bytes, made repeatable: inputs.c.
 *
 * A replay repeats the times of files that this process has made or changed, or that came to it, and other files have
 * their real times. A log has these readings for each file whose times the run asks for: its kind, the time of its
 * change, and the times that the kind names. */
#define _GNU_SOURCE
#include "inputs.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The times of a file that are not that of its change. */
enum { IS_MODIFIED = 1, IS_ACCESSED = 2, IS_CREATED = 4 };

struct times {
    int64_t changed, modified, accessed, created; /* nanoseconds */
};

/* Replaces a function of the C library. Its name here is another: headers may make stat a name of stat64, which has the
 * same parameters on 64-bit machines. */
#define REPLACE(result, name, parameters)                                                                              \
    static result(*next_##name) parameters;                                                                            \
    __attribute__((constructor)) static void find_##name(void) { find_next(#name, &next_##name); }                     \
    EXPORTED result our_##name parameters __asm__(#name);                                                              \
    result our_##name parameters

/* A library may call it as it is loaded, before the constructors of this one. */
#define NEXT(name) (__builtin_expect(!next_##name, 0) ? find_##name() : (void)0, next_##name)

/* -- times */

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

/* -- devices of random bytes. Python's files and sqlite call open and read. */

static int has_device; /* the process may have a descriptor of one */

static int noted(const char *path, int fd)
{
    if (fd >= 0 && has_random_bytes() && (!strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random")))
        has_device = 1;
    return fd;
}

#define MODE(last)                                                                                                     \
    __extension__({                                                                                                    \
        va_list arguments;                                                                                             \
        va_start(arguments, last);                                                                                     \
        mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;             \
        va_end(arguments);                                                                                             \
        mode;                                                                                                          \
    })

REPLACE(int, open, (const char *path, int flags, ...)) { return noted(path, NEXT(open)(path, flags, MODE(flags))); }
REPLACE(int, open64, (const char *path, int flags, ...)) { return noted(path, NEXT(open64)(path, flags, MODE(flags))); }
REPLACE(int, __open_2, (const char *path, int flags)) { return noted(path, NEXT(__open_2)(path, flags)); }
REPLACE(int, __open64_2, (const char *path, int flags)) { return noted(path, NEXT(__open64_2)(path, flags)); }
REPLACE(int, openat, (int folder, const char *path, int flags, ...))
{
    return noted(path, NEXT(openat)(folder, path, flags, MODE(flags)));
}
REPLACE(int, openat64, (int folder, const char *path, int flags, ...))
{
    return noted(path, NEXT(openat64)(folder, path, flags, MODE(flags)));
}

/* Linux has them as the character devices 1:8 and 1:9. */
static int is_device(int fd)
{
    struct stat s;
    return NEXT(fstat64)(fd, &s) == 0 && S_ISCHR(s.st_mode)
           && (s.st_rdev == makedev(1, 8) || s.st_rdev == makedev(1, 9));
}

REPLACE(ssize_t, read, (int fd, void *to, size_t size))
{
    if (__builtin_expect(has_device, 0) && has_random_bytes() && is_device(fd)) {
        take_random_bytes(to, size);
        return size;
    }
    return NEXT(read)(fd, to, size);
}
