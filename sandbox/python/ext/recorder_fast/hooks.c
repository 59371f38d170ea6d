#include "hooks.h"

#include <opcode.h>

/* A hook may make this number of nested Python calls more than the program, so that it also works at the recursion limit. */
enum { HOOK_CALLS = 200 };

void lock_recorder(Recorder *r)
{
    while (r->busy) {
        r->waiting++;
        Py_BEGIN_ALLOW_THREADS
        PyThread_acquire_lock(r->wake, WAIT_LOCK);
        Py_END_ALLOW_THREADS
        r->waiting--;
        r->woken = 0;
    }
    r->busy = 1;
}

void unlock_recorder(Recorder *r)
{
    r->busy = 0;
    if (r->waiting && !r->woken) {
        r->woken = 1;
        PyThread_release_lock(r->wake);
    }
}

static PyObject *attribute_is_true(PyObject *object, const char *name, int *is_true)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    *is_true = *is_true || value == Py_True;
    return value;
}

/* Tells whether the program may stop at this line. debug_control.DebugControl decides. */
static int may_stop(Recorder *r, long line)
{
    int found = 0;
    PyObject *everywhere = attribute_is_true(r->control, "everywhere", &found);
    PyObject *attention = attribute_is_true(r->channel, "attention", &found);
    PyObject *lines = PyObject_GetAttrString(r->control, "lines"), *key = PyLong_FromLong(line);
    if (!everywhere || !attention || !lines || !key)
        found = -1;
    else if (!found)
        found = PyDict_Contains(lines, key);
    Py_XDECREF(everywhere);
    Py_XDECREF(attention);
    Py_XDECREF(lines);
    Py_XDECREF(key);
    return found;
}

/* Returns the line of the step at a line event in code with comprehensions, 0 if the event is no step, or -1:
 * recorder_code._steps_of_comprehensions. */
static long step_in_comprehension(PyFrameObject *frame, Frame *known, long line)
{
    PyObject *at = PyLong_FromLong(PyFrame_GetLasti(frame));
    PyObject *number = at ? PyDict_GetItemWithError(known->code->comprehensions, at) : NULL;
    Py_XDECREF(at);
    if (number != NULL)
        line = PyLong_AsLong(number);
    else if (PyErr_Occurred())
        return -1;
    return line == known->line && known->has_steps && (number != NULL || known->code->is_comprehension) ? 0 : line;
}

static int on_line(Recorder *r, PyFrameObject *frame, Frame *known)
{
    long line = PyFrame_GetLineNumber(frame);
    int is_step = 1;
    if (known->code->comprehensions != Py_None) {
        if ((line = step_in_comprehension(frame, known, line)) < 0)
            return -1;
        is_step = line > 0;
    }
    known->has_steps = known->has_steps || is_step;
    if (switch_to_frame(r, known) < 0 || reserve(&r->pending, 1) < 0)
        return -1;
    if (known->raised) {
        known->raised = 0;
        put_byte(&r->pending, HANDLED);
    }
    known->thrown = 0;
    if (!is_step)
        return read_variables(r, frame, known);
    if (read_variables(r, frame, known) < 0 || (r->unheld_count > 0 && forget_unheld(r) < 0) || reserve(&r->pending, 16) < 0)
        return -1;
    long delta = line - known->line;
    if (delta >= -64 && delta < 64)
        put_byte(&r->pending, (int)(delta + 0xc0));
    else {
        put_byte(&r->pending, LINE);
        put_signed(&r->pending, delta);
    }
    known->line = line;
    r->steps++;
    if (r->steps >= r->budget_step && discard(call_python(r, (PyObject *)r, "_apply_budget", "()")) < 0)
        return -1;
    if (r->control == Py_None)
        return 0;
    int stops = may_stop(r, line);
    if (stops <= 0)
        return stops;
    if (!r->tail_only && flush(r) < 0)
        return -1;
    Py_INCREF(known);
    int failed = discard(call_python(r, (PyObject *)r, "_stop_at", "(OOl)", frame, known, line));
    Py_DECREF(known);
    return failed;
}

static int on_return(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *value)
{
    if (value != NULL) {
        int opcode = _Py_OPCODE(*frame->f_frame->prev_instr);
        return leave_frame(r, frame, known, opcode == YIELD_VALUE ? SUSPEND : RETURN, value);
    }
    if (known->failure == NULL && discard(call_python(r, (PyObject *)r, "_set_failure", "(O)", known)) < 0)
        return -1;
    return leave_frame(r, frame, known, UNWIND, NULL);
}

/* Records an exception. The end of an iteration is recorded only when it leaves its frame. */
static int on_exception(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *arg)
{
    PyObject *kind = PyTuple_GET_ITEM(arg, 0);
    if (kind == PyExc_StopIteration || kind == PyExc_StopAsyncIteration)
        return discard(call_python(r, (PyObject *)r, "_set_failure", "(OO)", known, kind));
    known->thrown = 1;
    if (discard(call_python(r, (PyObject *)r, "_set_failure", "(OOO)", known, kind, PyTuple_GET_ITEM(arg, 1))) < 0)
        return -1;
    if (kind == PyExc_GeneratorExit)
        return 0;
    if (switch_to_frame(r, known) < 0 || read_variables(r, frame, known) < 0 || switch_to_frame(r, known) < 0 ||
        reserve(&r->pending, 1) < 0)
        return -1;
    put_byte(&r->pending, RAISE);
    if (append_bytes(&r->pending, known->failure) < 0)
        return -1;
    known->raised = 1;
    if (r->control == Py_None)
        return 0;
    return discard(call_python(r, (PyObject *)r, "_stop_raised", "(OOO)", frame, known, arg));
}

int is_foreign(Recorder *r, PyCodeObject *code)
{
    PyObject *filename = code->co_filename;
    if (filename != r->filename && filename != r->filename_alias) {
        if (PyUnicode_GET_LENGTH(filename) != PyUnicode_GET_LENGTH(r->filename) || PyUnicode_Compare(filename, r->filename) != 0)
            return 1;
        Py_INCREF(filename);
        Py_XSETREF(r->filename_alias, filename);
    }
    return 0;
}

/* Ends recording after an exception in a hook, which never reaches the program. */
static void end_recording(Recorder *r)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (discard(call_python(r, (PyObject *)r, "_hook_failed", "(O)", value)) < 0)
        PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    r->ended = 1;
}

/* Finishes a hook: writes its records, and raises an interrupt that came while the recorder's Python code ran. */
static int finish_hook(Recorder *r, int failed)
{
    if (!failed && !r->tail_only && !r->ended)
        failed = flush(r) < 0;
    if (failed && PyErr_ExceptionMatches(PyExc_Exception)) {
        end_recording(r);
        failed = 0;
    }
    unlock_recorder(r);
    if (failed || !r->called_python)
        return failed ? -1 : 0;
    r->called_python = 0;
    PyObject *interrupted = PyObject_GetAttrString(r->channel, "interrupted");
    if (interrupted != Py_True)
        return discard(interrupted);
    Py_DECREF(interrupted);
    return discard(PyObject_CallMethod((PyObject *)r, "_raise_interrupt", NULL));
}

int trace_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    Recorder *r = (Recorder *)self;
    if (r->ended || what == PyTrace_OPCODE || (frame != r->last_frame && is_foreign(r, frame->f_frame->f_code)))
        return 0;
    lock_recorder(r);
    if (r->ended) {
        unlock_recorder(r);
        return 0;
    }
    PyThreadState *thread = PyThreadState_Get();
    thread->recursion_remaining += HOOK_CALLS;
    Frame *known = enter_frame(r, frame);
    int failed = known == NULL ? -1 : 0;
    if (!failed && what == PyTrace_LINE)
        failed = on_line(r, frame, known);
    else if (!failed && what == PyTrace_RETURN)
        failed = on_return(r, frame, known, arg);
    else if (!failed && what == PyTrace_EXCEPTION)
        failed = on_exception(r, frame, known, arg);
    failed = finish_hook(r, failed < 0);
    thread->recursion_remaining -= HOOK_CALLS;
    return failed;
}
