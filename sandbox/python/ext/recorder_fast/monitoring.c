/* The callbacks of sys.monitoring, for Python 3.12 and later.
 *
 * Events of library code are disabled where they occur, or cost one comparison. */
#include "hooks.h"

#if HAS_MONITORING

/* Action records an event of a frame. argument is the last argument of the callback, borrowed. Returns 0, or -1 with an
 * exception set. */
typedef int (*Action)(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *argument);

/* Callback is a callable that sys.monitoring calls. Python counts no call of it, unlike the call of a method in C, so
 * that the program can make as many nested calls as without it. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Recorder *recorder;
    Action action;
} Callback;

static int start(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *offset)
{
    if (known->code->is_watched)
        return 0;
    known->code->is_watched = 1;
    return discard(call_python(r, (PyObject *)r, "_watch_code", "(O)", known->code->code));
}

/* For the events before a generator continues: run_hook has entered its frame. */
static int resume(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *argument) { return 0; }

static int reach_line(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *number)
{
    long line = PyLong_AsLong(number);
    return line == -1 && PyErr_Occurred() ? -1 : on_line(r, frame, known, line);
}

static int return_value(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *value)
{
    return leave_frame(r, frame, known, RETURN, value);
}

static int yield_value(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *value)
{
    return leave_frame(r, frame, known, SUSPEND, value);
}

static int set_failure(Recorder *r, Frame *known, PyObject *error)
{
    return discard(call_python(r, (PyObject *)r, "_set_failure", "(OOO)", known, Py_TYPE(error), error));
}

static int unwind(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *error)
{
    return set_failure(r, known, error) < 0 ? -1 : leave_frame(r, frame, known, UNWIND, NULL);
}

/* Records an exception. The end of an iteration is recorded only when it leaves its frame. */
static int raise_error(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *error)
{
    PyObject *kind = (PyObject *)Py_TYPE(error);
    if (kind == PyExc_StopIteration || kind == PyExc_StopAsyncIteration || kind == PyExc_GeneratorExit)
        return 0;
    if (switch_to_frame(r, known) < 0 || read_variables(r, frame, known) < 0 || set_failure(r, known, error) < 0)
        return -1;
    return record_raise(r, frame, known, error, Py_None);
}

static int handle_error(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *error)
{
    return record_handled(r, known);
}

static PyObject *run_hook(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    Callback *callback = (Callback *)self;
    Recorder *r = callback->recorder;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (count < 2 || !PyCode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "the arguments are not those of sys.monitoring");
        return NULL;
    }
    if (is_foreign(r, (PyCodeObject *)args[0]))
        return Py_NewRef(callback->action == start ? r->disable : Py_None);
    if (r->ended || !begin_hook(r))
        Py_RETURN_NONE;
    PyFrameObject *frame = PyEval_GetFrame();
    Frame *known = enter_frame(r, frame);
    int failed = known == NULL || callback->action(r, frame, known, args[count - 1]) < 0;
    return finish_hook(r, failed) < 0 ? NULL : Py_NewRef(Py_None);
}

static int traverse_callback(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Callback *)self)->recorder);
    return 0;
}

static void free_callback(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Callback *)self)->recorder);
    PyObject_GC_Del(self);
}

PyTypeObject CallbackType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "recorder_fast.Callback",
    .tp_basicsize = sizeof(Callback),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_GC |
                Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "A callback of sys.monitoring.",
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Callback, call),
    .tp_traverse = traverse_callback,
    .tp_dealloc = free_callback,
};

static PyObject *new_callback(PyObject *self, void *action)
{
    Callback *callback = PyObject_GC_New(Callback, &CallbackType);
    if (callback == NULL)
        return NULL;
    callback->call = run_hook;
    callback->recorder = (Recorder *)Py_NewRef(self);
    callback->action = *(Action *)action;
    PyObject_GC_Track(callback);
    return (PyObject *)callback;
}

#define CALLBACK(name, action) {name, new_callback, NULL, NULL, &(Action){action}}

PyGetSetDef callbacks[] = {
    CALLBACK("_on_start", start),
    CALLBACK("_on_resume", resume),
    CALLBACK("_on_throw", resume),
    CALLBACK("_on_line", reach_line),
    CALLBACK("_on_return", return_value),
    CALLBACK("_on_yield", yield_value),
    CALLBACK("_on_unwind", unwind),
    CALLBACK("_on_raise", raise_error),
    CALLBACK("_on_handled", handle_error),
    {NULL},
};

#endif
