/* What a zygote and its children do without Python: a forked process copies each page
 * that it writes to, and Python writes to every object that it looks at. batch.py says
 * what the calls are, and in which order, and nursery.py what the service asks for; where this
 * is not built, they do the same themselves.
 *
 * A batch is a buffer of 64-bit words: the index of the step that failed, or -1, and
 * then ten words for each step: what to do, a bit for each argument that is a result and not
 * a value, an errno that is no failure, six arguments, the result. A result is that of an
 * earlier step, by its index, or, from -1 down, what the whole batch is given. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORM = 5 /* batch.py has the same */, WORDS = 10, REFERENCES = 1, TOLERATED = 2, ARGUMENTS = 3, RESULT = 9, GIVEN = 4 };

/* What is not the number of a system call. */
enum {
    STORE = -1,  /* the second argument at the first, an address, as 32 bits */
    EXPECT = -2, /* the first to be the second, else fails with the errno of the third */
    WRITE = -3,  /* the second at the first, an address, in decimal digits, as a C string */
};

static void write_digits(char *to, uint64_t value)
{
    char digits[24];
    int n = 0;
    do
        digits[n++] = '0' + value % 10;
    while (value /= 10);
    while (n)
        *to++ = digits[--n];
    *to = 0;
}

static void perform(int64_t *batch, Py_ssize_t steps, const int64_t *given)
{
    int64_t *first = batch + 1;
    batch[0] = -1;
    for (Py_ssize_t i = 0; i < steps; i++) {
        int64_t *step = first + i * WORDS, a[6], result = 0;
        for (int j = 0; j < 6; j++) {
            a[j] = step[ARGUMENTS + j];
            if (step[REFERENCES] >> j & 1)
                a[j] = a[j] < 0 ? given[-1 - a[j]] : first[a[j] * WORDS + RESULT];
        }
        if (step[0] == STORE)
            *(int32_t *)(intptr_t)a[0] = (int32_t)a[1];
        else if (step[0] == EXPECT)
            result = a[0] == a[1] ? 0 : -a[2];
        else if (step[0] == WRITE)
            write_digits((char *)(intptr_t)a[0], a[1]);
        else {
            do
                result = syscall(step[0], a[0], a[1], a[2], a[3], a[4], a[5]);
            while (result < 0 && errno == EINTR);
            if (result < 0)
                result = -errno;
        }
        step[RESULT] = result;
        if (result < 0 && result != -step[TOLERATED]) {
            batch[0] = i;
            return;
        }
    }
}

static int take(PyObject *object, Py_buffer *view)
{
    if (PyObject_GetBuffer(object, view, PyBUF_WRITABLE) < 0)
        return -1;
    if (view->len % 8 == 0 && view->len / 8 % WORDS == 1)
        return 0;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "not a batch");
    return -1;
}

static PyObject *batch_run(PyObject *module, PyObject *args)
{
    PyObject *object;
    Py_buffer view;
    long long a[GIVEN] = {0};
    if (!PyArg_ParseTuple(args, "O|LLLL", &object, &a[0], &a[1], &a[2], &a[3]) || take(object, &view) < 0)
        return NULL;
    int64_t given[GIVEN] = {a[0], a[1], a[2], a[3]};
    perform(view.buf, view.len / 8 / WORDS, given);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

/* -- the zygote's loop */

enum { ASK = 13 /* bytes */, ENDS = 3, GROUPS = 3, MOST = 64, NO_GROUP = 73 /* a child's exit status */ };

static void put32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = value >> (24 - 8 * i);
}

static uint32_t get32(const unsigned char *from)
{
    return (uint32_t)from[0] << 24 | from[1] << 16 | from[2] << 8 | from[3];
}

/* Takes what a child is asked for with, and the descriptors that it is given; their number, and 0
 * where nobody asks any more. */
static int receive(int control, unsigned char *message, int *ends)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE((ENDS + GROUPS) * sizeof(int))];
    } rights;
    struct iovec vector = {message, ASK};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    ssize_t n;
    do
        n = recvmsg(control, &header, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *sent = n == ASK ? CMSG_FIRSTHDR(&header) : NULL;
    if (!sent || sent->cmsg_type != SCM_RIGHTS || sent->cmsg_len < CMSG_LEN(ENDS * sizeof(int)))
        return 0;
    if (header.msg_flags & MSG_CTRUNC) /* not all came: the child would be outside its groups */
        _exit(70);
    size_t bytes = sent->cmsg_len - CMSG_LEN(0);
    memcpy(ends, CMSG_DATA(sent), bytes);
    return bytes / sizeof(int);
}

/* Sends a message, with a descriptor that is closed then where it is not -1. */
static void say(int control, const void *message, size_t size, int fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } rights = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec vector = {(void *)message, size};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    if (fd >= 0) {
        memcpy(CMSG_DATA(&rights.head), &fd, sizeof fd);
        header.msg_control = &rights;
        header.msg_controllen = sizeof rights;
    }
    while (sendmsg(control, &header, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
    if (fd >= 0)
        close(fd);
}

static void reap(int control, int ended)
{
    char signals[1024];
    if (read(ended, signals, sizeof signals) < 0 && errno != EAGAIN && errno != EINTR)
        _exit(70);
    int status;
    struct rusage used;
    for (pid_t pid; (pid = wait4(-1, &status, WNOHANG, &used)) > 0;) {
        uint64_t time = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000ull + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
        unsigned char message[17] = "x";
        put32(message + 1, pid);
        put32(message + 5, status);
        put32(message + 9, time >> 32);
        put32(message + 13, time);
        say(control, message, sizeof message, -1);
    }
}

/* Has a child join control groups, by descriptors of their files, which it closes. */
static void join(const int *groups, int count)
{
    for (int i = 0; i < count; i++) {
        ssize_t n;
        do
            n = write(groups[i], "0", 1);
        while (n < 0 && errno == EINTR);
        if (n != 1)
            _exit(NO_GROUP);
        close(groups[i]);
    }
}

/* Forks one child, which joins its groups, and makes its batch there. Its pid, and 0 in it. */
static pid_t make(int control, uint32_t number, Py_buffer *batch, const int64_t *given, int home, const int *groups, int count)
{
    pid_t pid = -1;
    if (home < 0 || unshare(CLONE_NEWPID) == 0)
        pid = fork();
    int failed = errno;
    if (pid == 0) {
        join(groups, count);
        perform(batch->buf, batch->len / 8 / WORDS, given);
        return 0;
    }
    if (home >= 0 && setns(home, CLONE_NEWPID) < 0)
        _exit(70); /* there is no way back */
    unsigned char answer[256] = "e";
    put32(answer + 1, number);
    int pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    if (pid >= 0)
        failed = errno;
    if (pidfd >= 0) {
        answer[0] = 'f';
        put32(answer + 5, pid);
        say(control, answer, 9, pidfd);
    } else {
        int length = snprintf((char *)answer + 5, sizeof answer - 5, "fork: %s", strerror(failed));
        say(control, answer, 5 + length, -1);
    }
    return pid;
}

static PyObject *serve(int control, int ended, int home, Py_buffer *births, uint32_t count)
{
    unsigned char message[ASK];
    for (;;) {
        struct pollfd ready[2] = {{control, POLLIN, 0}, {ended, POLLIN, 0}};
        if (poll(ready, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return PyErr_SetFromErrno(PyExc_OSError);
        }
        if (ready[1].revents)
            reap(control, ended);
        if (!ready[0].revents)
            continue;
        int ends[ENDS + GROUPS], had = receive(control, message, ends);
        if (!had)
            _exit(0);
        uint32_t birth = get32(message + 9);
        if (birth >= count)
            _exit(70);
        int64_t given[GIVEN] = {ends[0], ends[1], ends[2], get32(message + 5)};
        if (make(control, get32(message + 1), &births[birth], given, home, ends + ENDS, had - ENDS) == 0)
            return PyLong_FromUnsignedLong(birth);
        for (int j = 0; j < had; j++)
            close(ends[j]);
    }
}

static PyObject *batch_serve(PyObject *module, PyObject *args)
{
    PyObject *births, *result = NULL;
    Py_buffer views[MOST];
    int control, ended, home;
    if (!PyArg_ParseTuple(args, "iiiO!", &control, &ended, &home, &PyList_Type, &births))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(births), taken = 0;
    while (taken < count && taken < MOST && take(PyList_GET_ITEM(births, taken), &views[taken]) == 0)
        taken++;
    if (!PyErr_Occurred())
        result = serve(control, ended, home, views, taken);
    if (result) /* a child: it goes without writing to all of these */
        return result;
    while (taken)
        PyBuffer_Release(&views[--taken]);
    return result;
}

/* -- memory */

enum { ARENA = 1 << 20, HUGE = 2 * ARENA };

static char *second; /* the arena that the last huge page still has */

/* An arena for Python's small objects: two of them fill a huge page. */
static void *arena(void *context, size_t size)
{
    char *got = size == ARENA ? second : NULL;
    if (got) {
        second = NULL;
        return got;
    }
    size_t room = size == ARENA ? 2 * HUGE : size;
    got = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return NULL;
    if (size != ARENA)
        return got;
    size_t before = -(uintptr_t)got % HUGE;
    if (before)
        munmap(got, before);
    if (before < HUGE)
        munmap(got + before + HUGE, HUGE - before);
    second = got + before + ARENA;
    return got + before;
}

static void free_arena(void *context, void *at, size_t size) { munmap(at, size); }

/* The stage has this loaded before Python (LD_PRELOAD): the arenas that it begins with are
 * 2 MB, and a fork would copy an entry for each page of them. */
__attribute__((constructor)) static void pair_arenas(void)
{
    PyObjectArenaAllocator allocator = {NULL, arena, free_arena};
    if (!Py_IsInitialized())
        PyObject_SetArenaAllocator(&allocator);
}

static PyMethodDef methods[] = {
    {"run", batch_run, METH_VARARGS, "run(batch, *given): makes the calls"},
    {"serve", batch_serve, METH_VARARGS, "serve(control, ended, home, births): what nursery.serve does"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "syscall_batch", "Makes prepared system calls.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_syscall_batch(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "FORM", FORM) < 0)
        Py_CLEAR(module);
    return module;
}
