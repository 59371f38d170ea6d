/* Makes prepared system calls, one after the other, without touching a Python object
 * in between: in a forked child each object touched is a page copied. What the calls
 * are, and in which order, batch.py says; where this is not built, batch.py makes them
 * itself.
 *
 * A batch is a buffer of 64-bit words: the index of the step that failed, or -1, and
 * then ten words for each step: what to do, a bit for each argument that is the result of an
 * earlier step and not a value, an errno that is no failure, six arguments, the result. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORDS = 10, REFERENCES = 1, TOLERATED = 2, ARGUMENTS = 3, RESULT = 9 };

/* What is not the number of a system call. */
enum { STORE = -1 /* the second argument at the first, an address, as 32 bits */, EXPECT = -2 /* the first to be the second, else fails with the errno of the third */ };

static void perform(int64_t *batch, Py_ssize_t steps)
{
    int64_t *first = batch + 1;
    batch[0] = -1;
    for (Py_ssize_t i = 0; i < steps; i++) {
        int64_t *step = first + i * WORDS, a[6], result = 0;
        for (int j = 0; j < 6; j++)
            a[j] = step[REFERENCES] >> j & 1 ? first[step[ARGUMENTS + j] * WORDS + RESULT] : step[ARGUMENTS + j];
        if (step[0] == STORE)
            *(int32_t *)(intptr_t)a[0] = (int32_t)a[1];
        else if (step[0] == EXPECT)
            result = a[0] == a[1] ? 0 : -a[2];
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
    if (!PyArg_ParseTuple(args, "O", &object) || take(object, &view) < 0)
        return NULL;
    perform(view.buf, view.len / 8 / WORDS);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyObject *batch_fork(PyObject *module, PyObject *args)
{
    PyObject *object;
    Py_buffer view;
    int home;
    if (!PyArg_ParseTuple(args, "Oi", &object, &home) || take(object, &view) < 0)
        return NULL;
    pid_t pid = -1;
    if (home < 0 || unshare(CLONE_NEWPID) == 0)
        pid = fork();
    int failed = errno;
    if (pid == 0)
        perform(view.buf, view.len / 8 / WORDS);
    else if (home >= 0 && setns(home, CLONE_NEWPID) < 0)
        Py_FatalError("there is no way back to the own pid namespace");
    PyBuffer_Release(&view);
    if (pid < 0) {
        errno = failed;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return PyLong_FromLong(pid);
}

static PyMethodDef methods[] = {
    {"run", batch_run, METH_VARARGS, "run(batch): makes the calls"},
    {"fork", batch_fork, METH_VARARGS,
     "fork(batch, home): forks, and makes the calls in the child. home is a pidfd of this process, and the child "
     "is in a pid namespace of its own then; or -1. Returns the child's pid, and 0 there. None of Python's own hooks for a fork run."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "syscall_batch", "Makes prepared system calls.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_syscall_batch(void) { return PyModule_Create(&definition); }
