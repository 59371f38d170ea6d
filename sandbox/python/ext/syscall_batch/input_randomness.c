/* The randomness of the kernel, made repeatable: inputs.c. */
#define _GNU_SOURCE
#include "inputs.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MAX_ENTROPY_BYTES = 256 /* of getentropy */ };

REPLACE(ssize_t, getrandom, (void *to, size_t size, unsigned flags))
{
    if (!has_random_bytes())
        return NEXT(getrandom)(to, size, flags);
    take_random_bytes(to, size);
    return size;
}

REPLACE(int, getentropy, (void *to, size_t size))
{
    if (!has_random_bytes() || size > MAX_ENTROPY_BYTES)
        return NEXT(getentropy)(to, size);
    take_random_bytes(to, size);
    return 0;
}

/* os.getrandom makes the system call itself. */
REPLACE(long, syscall, (long number, ...))
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (is_active && number == SYS_getrandom)
        return our_getrandom((void *)a[0], a[1], a[2]);
    if (is_active && number == SYS_clock_gettime)
        return clock_gettime(a[0], (struct timespec *)a[1]);
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* -- devices of random bytes. Python's files and sqlite call open and read. */

static int has_device; /* the process may have a descriptor of one */

/* Returns a descriptor that was opened. A read looks at its own one, which may be a copy. */
static int noted(const char *path, int fd)
{
    if (fd >= 0 && has_random_bytes() && (!strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random")))
        has_device = 1;
    return fd;
}

/* The third parameter of open. */
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
    return read_real_stat(fd, &s) == 0 && S_ISCHR(s.st_mode)
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
