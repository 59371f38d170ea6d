/* The loop of the zygote: it forks a child for each request and reports children that have ended. fork_server.py describes
 * the messages. */
#include "batch.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUEST_BYTES = 13, ENDS = 3, MAX_GROUPS = 3, MAX_BATCHES = 64 };
enum { EXIT_PROTOCOL = 70, EXIT_NO_GROUP = 73 }; /* exit statuses */

static void put32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = value >> (24 - 8 * i);
}

static uint32_t get32(const unsigned char *from)
{
    return (uint32_t)from[0] << 24 | from[1] << 16 | from[2] << 8 | from[3];
}

/* Receives a request and its descriptors. Returns their number, or 0 if the service has closed the socket. */
static int receive_request(int control, unsigned char *message, int *descriptors)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE((ENDS + MAX_GROUPS) * sizeof(int))];
    } rights;
    struct iovec vector = {message, REQUEST_BYTES};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    ssize_t n;
    do
        n = recvmsg(control, &header, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *sent = n == REQUEST_BYTES ? CMSG_FIRSTHDR(&header) : NULL;
    if (!sent || sent->cmsg_type != SCM_RIGHTS || sent->cmsg_len < CMSG_LEN(ENDS * sizeof(int)))
        return 0;
    if (header.msg_flags & MSG_CTRUNC) /* a child without all descriptors would run outside its control groups */
        _exit(EXIT_PROTOCOL);
    size_t bytes = sent->cmsg_len - CMSG_LEN(0);
    memcpy(descriptors, CMSG_DATA(sent), bytes);
    return bytes / sizeof(int);
}

/* Sends a message and, unless fd is -1, a descriptor, which it closes. */
static void send_message(int control, const void *message, size_t size, int fd)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
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

/* Reports all children that have ended. */
static void report_ended(int control, int signal_fd)
{
    char signals[1024];
    if (read(signal_fd, signals, sizeof signals) < 0 && errno != EAGAIN && errno != EINTR)
        _exit(EXIT_PROTOCOL);
    int status;
    struct rusage used;
    for (pid_t pid; (pid = wait4(-1, &status, WNOHANG, &used)) > 0;) {
        uint64_t seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec;
        uint64_t microseconds = seconds * 1000000 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
        unsigned char message[17] = "x";
        put32(message + 1, pid);
        put32(message + 5, status);
        put32(message + 9, microseconds >> 32);
        put32(message + 13, microseconds);
        send_message(control, message, sizeof message, -1);
    }
}

/* Joins control groups, in a child: writes to descriptors of their files, and closes them. */
static void join_groups(const int *groups, int count)
{
    for (int i = 0; i < count; i++) {
        ssize_t n;
        do
            n = write(groups[i], "0", 1);
        while (n < 0 && errno == EINTR);
        if (n != 1)
            _exit(EXIT_NO_GROUP);
        close(groups[i]);
    }
}

/* Forks a child, which joins its control groups and runs its batch. Returns the pid, 0 in the child, or -1. */
static pid_t fork_child(int control, uint32_t number, const Py_buffer *batch, const int64_t *given, int namespaces,
                        const int *groups, int group_count)
{
    int pidfd = -1;
    pid_t pid = fork_into(namespaces, &pidfd);
    int error = errno;
    if (pid == 0) {
        join_groups(groups, group_count);
        run_batch(batch, given);
        return 0;
    }
    unsigned char answer[256] = "e";
    put32(answer + 1, number);
    if (pid > 0) {
        answer[0] = 'f';
        put32(answer + 5, pid);
        send_message(control, answer, 9, pidfd);
    } else {
        int length = snprintf((char *)answer + 5, sizeof answer - 5, "fork: %s", strerror(error));
        send_message(control, answer, 5 + length, -1);
    }
    return pid;
}

static PyObject *serve(int control, int signal_fd, const int *namespaces, const Py_buffer *batches, uint32_t count)
{
    unsigned char request[REQUEST_BYTES];
    for (;;) {
        struct pollfd ready[2] = {{control, POLLIN, 0}, {signal_fd, POLLIN, 0}};
        if (poll(ready, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return PyErr_SetFromErrno(PyExc_OSError);
        }
        if (ready[1].revents)
            report_ended(control, signal_fd);
        if (!ready[0].revents)
            continue;
        int fds[ENDS + MAX_GROUPS], received = receive_request(control, request, fds);
        if (!received)
            _exit(0);
        uint32_t index = get32(request + 9);
        if (index >= count)
            _exit(EXIT_PROTOCOL);
        int64_t given[MAX_GIVEN] = {fds[0], fds[1], fds[2], get32(request + 5)};
        if (fork_child(control, get32(request + 1), &batches[index], given, namespaces[index], fds + ENDS,
                       received - ENDS) == 0)
            return PyLong_FromUnsignedLong(index);
        for (int j = 0; j < received; j++)
            close(fds[j]);
    }
}

PyObject *serve_forks(PyObject *module, PyObject *args)
{
    PyObject *batches, *result = NULL;
    Py_buffer views[MAX_BATCHES];
    int control, signal_fd, namespaces[MAX_BATCHES];
    const char *ready;
    Py_ssize_t ready_bytes;
    int use_huge_pages;
    if (!PyArg_ParseTuple(args, "iiO!y#p", &control, &signal_fd, &PyList_Type, &batches, &ready, &ready_bytes,
                          &use_huge_pages))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(batches), taken = 0;
    for (; taken < count && taken < MAX_BATCHES; taken++) {
        PyObject *words;
        if (!PyArg_Parse(PyList_GET_ITEM(batches, taken), "(iO)", &namespaces[taken], &words)
            || get_batch(words, &views[taken]) < 0)
            break;
    }
    if (!PyErr_Occurred()) {
        share_memory(use_huge_pages);
        send_message(control, ready, ready_bytes, -1);
        result = serve(control, signal_fd, namespaces, views, taken);
    }
    if (result) /* in a child: releasing the buffers would write to, and so copy, their pages */
        return result;
    while (taken)
        PyBuffer_Release(&views[--taken]);
    return NULL;
}
