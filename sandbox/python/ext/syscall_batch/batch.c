/* A batch is an array of 64-bit words: the index of the step that failed, or -1, and then STEP_WORDS words for each step.
 * A step has an operation, a bit for each argument that refers to a result, six arguments, and its result. A
 * reference is the index of an earlier step, or from -1 down the index of a given number. */
#include "batch.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STEP_WORDS = 9, REFERENCES = 1, ARGUMENTS = 2, RESULT = 8, ARGUMENT_COUNT = 6 };

/* Operations that are not the number of a system call. */
enum {
    STORE = -1,  /* writes the second argument as 32 bits to the address in the first */
    EXPECT = -2, /* fails with the errno in the third argument if the first two differ */
};

int get_batch(PyObject *object, Py_buffer *view)
{
    if (PyObject_GetBuffer(object, view, PyBUF_WRITABLE) < 0)
        return -1;
    if (view->len % 8 == 0 && view->len / 8 % STEP_WORDS == 1)
        return 0;
    PyErr_Format(PyExc_ValueError, "not a batch: %zd bytes, want 8 and %d for each step", view->len, 8 * STEP_WORDS);
    PyBuffer_Release(view);
    return -1;
}

static int64_t run_step(int64_t operation, const int64_t *a)
{
    int64_t result = 0;
    switch (operation) {
    case STORE:
        *(int32_t *)(intptr_t)a[0] = (int32_t)a[1];
        return 0;
    case EXPECT:
        return a[0] == a[1] ? 0 : -a[2];
    default:
        do
            result = syscall(operation, a[0], a[1], a[2], a[3], a[4], a[5]);
        while (result < 0 && errno == EINTR);
        return result < 0 ? -errno : result;
    }
}

void run_batch(const Py_buffer *view, const int64_t given[MAX_GIVEN])
{
    int64_t *failed = view->buf, *first = failed + 1;
    Py_ssize_t steps = view->len / 8 / STEP_WORDS;
    *failed = -1;
    for (Py_ssize_t i = 0; i < steps; i++) {
        int64_t *step = first + i * STEP_WORDS, a[ARGUMENT_COUNT];
        for (int j = 0; j < ARGUMENT_COUNT; j++) {
            a[j] = step[ARGUMENTS + j];
            if (step[REFERENCES] >> j & 1)
                a[j] = a[j] < 0 ? given[-1 - a[j]] : first[a[j] * STEP_WORDS + RESULT];
        }
        step[RESULT] = run_step(step[0], a);
        if (step[RESULT] < 0) {
            *failed = i;
            return;
        }
    }
}
