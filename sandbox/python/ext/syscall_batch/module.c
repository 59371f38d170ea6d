/* syscall_batch: the system calls that the zygote and its children make without Python.
 *
 * A forked process copies each page that it writes to, and Python writes to every object that it uses. If this extension is
 * not built, syscalls.py and fork_server.py do the same work. */
#include "batch.h"
#include "inputs.h"

enum { ABI_VERSION = 10 /* of the interface to syscalls.py, which has the same number */ };

static PyObject *run(PyObject *module, PyObject *args)
{
    PyObject *object;
    Py_buffer view;
    long long a[MAX_GIVEN] = {0};
    if (!PyArg_ParseTuple(args, "O|LLLL", &object, &a[0], &a[1], &a[2], &a[3]) || get_batch(object, &view) < 0)
        return NULL;
    int64_t given[MAX_GIVEN] = {a[0], a[1], a[2], a[3]};
    run_batch(&view, given);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, "run(batch, *given): makes the calls of a batch."},
    {"serve", serve_forks, METH_VARARGS,
     "serve(control, signal_fd, batches, ready, use_huge_pages): fork_server.serve_in_python in C."},
    {"give_back", give_back, METH_VARARGS,
     "give_back(copies): returns how many copied pages are shared again: share.c."},
    {"begin_inputs", begin_inputs, METH_VARARGS,
     "begin_inputs(seed, clock): begins a run of this thread with repeatable randomness, and clocks that are logged "
     "or, if clock is a log, replayed: inputs.c. An empty seed leaves the randomness of the kernel."},
    {"end_inputs", end_inputs, METH_NOARGS,
     "end_inputs(): ends the run, and returns its log of the clocks, and how many readings were not in a log."},
    {"pause_inputs", pause_inputs, METH_NOARGS,
     "pause_inputs(): gives this thread the real clocks and randomness. Returns the argument of resume_inputs."},
    {"resume_inputs", resume_inputs, METH_O, "resume_inputs(paused): ends a pause."},
    {"note_start", note_start, METH_NOARGS,
     "note_start(): notes that the process starts. The times of files that change from now on are repeatable."},
    {"started_threads", started_threads, METH_NOARGS,
     "started_threads(): returns how many threads of Python have started since begin_inputs."},
    {NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "syscall_batch", "Makes prepared system calls.", -1, methods};

PyMODINIT_FUNC PyInit_syscall_batch(void)
{
    PyObject *module = PyModule_Create(&definition);
    note_own_id();
    Py_DECREF(note_start(module, NULL));
    if (module && (PyModule_AddIntConstant(module, "ABI_VERSION", ABI_VERSION) < 0
                   || PyModule_AddIntConstant(module, "HAS_INPUTS", has_inputs()) < 0))
        Py_CLEAR(module);
    return module;
}
