/* The recorder's fast path: all that happens often, in C.
 *
 * State is a base class of recorder_trace.FastRecorder, which has what is rare: the first
 * sight of a code object or a class, lanes, exceptions, the budget's end, and standing
 * still. The records are the same as Python's. Variables are read from the frame's slots:
 * nothing is written back, so frames of closures are read as well. Libraries run untraced.
 *
 * Built where a compiler is there, for the Python that will load it:
 *
 *     gcc -O2 -shared -fPIC -I$(python -c 'import sysconfig; print(sysconfig.get_paths()["include"])') \
 *         recorder_fast.c -o recorder_fast$(python -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
 *
 * Records are gathered in pending, and handed over when a hook ends. Whatever calls Python
 * that may write records drains pending first, so that the order stays.
 */
#include "recorder_fast.h"
#include "recorder_fast_bytes.h"
#include "recorder_fast_objects.h"
#include "recorder_fast_values.h"
#include "recorder_fast_frames.h"

/* One hook at a time. The GIL guards busy itself: it is set for as long as Python that
 * a hook calls may let other threads run. */
static void acquire(State *s)
{
    while (s->busy) {
        s->waiting++;
        Py_BEGIN_ALLOW_THREADS
        PyThread_acquire_lock(s->wake, WAIT_LOCK);
        Py_END_ALLOW_THREADS
        s->waiting--;
        s->woken = 0;
    }
    s->busy = 1;
}

static void release(State *s)
{
    s->busy = 0;
    if (s->waiting && !s->woken) {
        s->woken = 1;
        PyThread_release_lock(s->wake);
    }
}

/* Calls a method of the recorder's Python side, which may write records. */
static int call(State *s, const char *method, PyObject *a, PyObject *b, PyObject *c)
{
    s->called = 1;
    PyObject *name = drain(s) < 0 ? NULL : PyUnicode_FromString(method);
    PyObject *done = name ? PyObject_CallMethodObjArgs((PyObject *)s, name, a, b, c, NULL) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int handled(State *s, Frame *known)
{
    known->raised = 0;
    if (more(&s->pending, 1) < 0)
        return -1;
    byte(&s->pending, HANDLED);
    return 0;
}

/* Whether the program may stop at this line: stops.Stops decides. */
static int interesting(State *s, long line)
{
    PyObject *everywhere = PyObject_GetAttrString(s->control, "everywhere"), *lines = PyObject_GetAttrString(s->control, "lines");
    PyObject *attention = PyObject_GetAttrString(s->channel, "attention"), *key = PyLong_FromLong(line);
    int found = -1;
    if (everywhere && lines && attention && key)
        found = everywhere == Py_True || attention == Py_True ? 1 : PyDict_Contains(lines, key);
    Py_XDECREF(everywhere);
    Py_XDECREF(lines);
    Py_XDECREF(attention);
    Py_XDECREF(key);
    return found;
}

static int on_line(State *s, PyFrameObject *frame, Frame *known)
{
    long now = PyFrame_GetLineNumber(frame);
    if (at(s, known) < 0 || (known->raised && handled(s, known) < 0))
        return -1;
    known->thrown = 0;
    if (read_frame(s, frame, known) < 0 || (s->unheld_used > 0 && settle(s) < 0) || more(&s->pending, 16) < 0)
        return -1;
    long delta = now - known->line;
    if (delta >= -64 && delta < 64)
        byte(&s->pending, (int)(delta + 0xc0));
    else {
        byte(&s->pending, LINE);
        zigzag(&s->pending, delta);
    }
    known->line = now;
    s->count++;
    if (s->count >= s->mark && call(s, "_budget", NULL, NULL, NULL) < 0)
        return -1;
    if (s->control == Py_None)
        return 0;
    int stops = interesting(s, now);
    if (stops <= 0)
        return stops;
    PyObject *line = PyLong_FromLong(now);
    Py_INCREF(known);
    int failed = line == NULL || (!s->kept && flush(s) < 0) || call(s, "_stop_at", (PyObject *)frame, (PyObject *)known, line) < 0;
    Py_DECREF(known);
    Py_XDECREF(line);
    return failed ? -1 : 0;
}

static int on_return(State *s, PyFrameObject *frame, Frame *known, PyObject *value)
{
    if (value == NULL)
        return known->failure == NULL && call(s, "_fail", (PyObject *)known, NULL, NULL) < 0 ? -1 : leave(s, frame, known, UNWIND, NULL);
    int opcode = _Py_OPCODE(*frame->f_frame->prev_instr);
    return leave(s, frame, known, opcode == YIELD_VALUE ? SUSPEND : RETURN, value);
}

/* An exception; the ends of iterations are told when they leave the frame. */
static int on_exception(State *s, PyFrameObject *frame, Frame *known, PyObject *arg)
{
    PyObject *kind = PyTuple_GET_ITEM(arg, 0);
    if (kind == PyExc_StopIteration || kind == PyExc_StopAsyncIteration)
        return call(s, "_fail", (PyObject *)known, kind, NULL);
    known->thrown = 1;
    if (call(s, "_fail", (PyObject *)known, kind, PyTuple_GET_ITEM(arg, 1)) < 0)
        return -1;
    if (kind == PyExc_GeneratorExit)
        return 0;
    if (at(s, known) < 0 || read_frame(s, frame, known) < 0 || at(s, known) < 0 || more(&s->pending, 1 + PyBytes_GET_SIZE(known->failure)) < 0)
        return -1;
    byte(&s->pending, RAISE);
    append(&s->pending, known->failure);
    known->raised = 1;
    return s->control == Py_None ? 0 : call(s, "_stop_raised", (PyObject *)frame, (PyObject *)known, arg);
}

/* Whether it is a comprehension's or generator expression's, which have no frames of
 * their own in a recording: <listcomp>, <setcomp>, <dictcomp>, <genexpr>. */
static int inner(PyObject *name)
{
    if (PyUnicode_GET_LENGTH(name) < 3 || PyUnicode_READ_CHAR(name, 0) != '<')
        return 0;
    Py_UCS4 c = PyUnicode_READ_CHAR(name, 1);
    return c == 's' || c == 'd' || c == 'g' || (c == 'l' && PyUnicode_READ_CHAR(name, 2) == 'i');
}

/* Whether code is the user's. */
static int foreign(State *s, PyCodeObject *code)
{
    PyObject *filename = code->co_filename;
    if (filename != s->filename && filename != s->alias) {
        if (PyUnicode_GET_LENGTH(filename) != PyUnicode_GET_LENGTH(s->filename) || PyUnicode_Compare(filename, s->filename) != 0)
            return 1;
        Py_INCREF(filename);
        Py_XSETREF(s->alias, filename);
    }
    return inner(code->co_name);
}

/* Ends what a hook does: hands over its records, and tells Python what failed. */
static int ended(State *s, int failed)
{
    if (!failed && !s->kept && !s->over)
        failed = flush(s) < 0;
    if (failed && PyErr_ExceptionMatches(PyExc_Exception)) { /* never the program's affair */
        PyObject *type, *value, *where;
        PyErr_Fetch(&type, &value, &where);
        PyErr_NormalizeException(&type, &value, &where);
        if (call(s, "_failed", value, NULL, NULL) < 0)
            PyErr_Clear();
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(where);
        s->over = 1;
        failed = 0;
    }
    release(s);
    if (failed || !s->called)
        return failed ? -1 : 0;
    s->called = 0;
    PyObject *interrupted = PyObject_GetAttrString(s->channel, "interrupted");
    PyObject *done = interrupted == Py_True ? PyObject_CallMethod((PyObject *)s, "_interrupt", NULL) : interrupted;
    if (done != interrupted)
        Py_XDECREF(interrupted);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    State *s = (State *)self;
    if (s->over || what == PyTrace_OPCODE || (frame != s->last_frame && foreign(s, frame->f_frame->f_code)))
        return 0;
    acquire(s);
    if (s->over) {
        release(s);
        return 0;
    }
    Frame *known = enter(s, frame);
    int got = known == NULL ? -1 : 0;
    if (known == NULL)
        ;
    else if (what == PyTrace_LINE)
        got = on_line(s, frame, known);
    else if (what == PyTrace_RETURN)
        got = on_return(s, frame, known, arg);
    else if (what == PyTrace_EXCEPTION)
        got = on_exception(s, frame, known, arg);
    else if (what == PyTrace_CALL && PyThreadState_Get()->recursion_remaining < ROOM)
        got = call(s, "_at_limit", NULL, NULL, NULL);
    return ended(s, got < 0);
}

#include "recorder_fast_library.h"
#include "recorder_fast_types.h"
#include "recorder_fast_module.h"
