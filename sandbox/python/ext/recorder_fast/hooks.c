#include "hooks.h"

/* A hook may make this number of nested calls more than the program, so that it also works at the recursion limit. */
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

/* The name of the attribute that is read at each line. */
static PyObject *attention_name;

int prepare_hooks(void)
{
    attention_name = PyUnicode_InternFromString("attention");
    return attention_name ? 0 : -1;
}

/* Tells whether the program may stop at this line. debug_control.DebugControl decides. */
static int may_stop(Recorder *r, long line)
{
    if (r->stop_lines == NULL || r->stop_lines == Py_None)
        return 1;
    PyObject *attention = PyObject_GetAttr(r->channel, attention_name);
    if (attention == NULL)
        return -1;
    int may = attention == Py_True;
    Py_DECREF(attention);
    if (!may && PyDict_GET_SIZE(r->stop_lines) > 0)
        may = get_by_number(r->stop_lines, line) != NULL;
    return !may && PyErr_Occurred() ? -1 : may;
}

int record_handled(Recorder *r, Frame *known)
{
    if (!known->raised)
        return 0;
    known->raised = 0;
    if (switch_to_frame(r, known) < 0 || reserve(&r->pending, 1) < 0)
        return -1;
    put_byte(&r->pending, HANDLED);
    return 0;
}

/* Records that a frame continues after another frame, or after an exception that it has caught. */
static int continue_frame(Recorder *r, Frame *known)
{
    known->thrown = 0;
    return switch_to_frame(r, known) < 0 ? -1 : record_handled(r, known);
}

/* Records that a frame has reached a line, and stops the program there if the debugger wants that. */
static int record_step(Recorder *r, PyFrameObject *frame, Frame *known, long line)
{
    known->has_steps = 1;
    if (continue_frame(r, known) < 0 || read_variables(r, frame, known) < 0 ||
        (r->unheld_count > 0 && forget_unheld(r) < 0) || reserve(&r->pending, 16) < 0)
        return -1;
    long delta = line - known->line;
    if (delta >= -64 && delta < 64)
        put_byte(&r->pending, (int)(delta + 0xc0));
    else {
        put_byte(&r->pending, LINE);
        put_signed(&r->pending, delta);
    }
    known->line = line;
    if (known->code->is_module && PyDict_GET_SIZE(known->code->names_of_turn) > 0 &&
        (known->turn = get_cached(known->code->cached_turns, known->code->names_of_turn,
                                  PyFrame_GetLasti(frame))) == NULL && PyErr_Occurred())
        return -1;
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

/* Records the steps at a line event in code with comprehensions: recorder_code._steps_of_comprehensions. */
static int record_comprehension(Recorder *r, PyFrameObject *frame, Frame *known, long line)
{
    PyObject *steps = get_by_number(known->code->comprehensions, PyFrame_GetLasti(frame)); /* the code holds them */
    if (steps == NULL && PyErr_Occurred())
        return -1;
    if (steps != NULL && PyTuple_Check(steps)) {
        if (record_step(r, frame, known, PyLong_AsLong(PyTuple_GET_ITEM(steps, 0))) < 0)
            return -1;
        line = PyLong_AsLong(PyTuple_GET_ITEM(steps, 1));
    } else if (steps != NULL)
        line = PyLong_AsLong(steps);
    int is_same = line == known->line && known->has_steps && (steps != NULL || known->code->is_comprehension);
    if (line > 0 && !is_same)
        return record_step(r, frame, known, line);
    return continue_frame(r, known) < 0 ? -1 : read_variables(r, frame, known);
}

int on_line(Recorder *r, PyFrameObject *frame, Frame *known, long line)
{
    return known->code->comprehensions == Py_None ? record_step(r, frame, known, line)
                                                  : record_comprehension(r, frame, known, line);
}

int record_raise(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *error, PyObject *trace)
{
    if (switch_to_frame(r, known) < 0 || reserve(&r->pending, 1) < 0)
        return -1;
    put_byte(&r->pending, RAISE);
    if (append_bytes(&r->pending, known->failure) < 0)
        return -1;
    known->raised = known->thrown = 1;
    if (r->control == Py_None)
        return 0;
    return discard(call_python(r, (PyObject *)r, "_stop_raised", "(OOOO)", frame, known, error, trace));
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

int begin_hook(Recorder *r)
{
    lock_recorder(r);
    if (r->ended) {
        unlock_recorder(r);
        return 0;
    }
    add_call_space(PyThreadState_Get(), HOOK_CALLS);
    return 1;
}

/* Ends recording after an exception in a hook, which never reaches the program. */
static void end_recording(Recorder *r)
{
    PyObject *error = take_exception();
    if (discard(call_python(r, (PyObject *)r, "_hook_failed", "(O)", error)) < 0)
        PyErr_Clear();
    Py_XDECREF(error);
    r->ended = 1;
}

/* Raises an interrupt that came while the recorder's Python code ran. */
static int raise_interrupt(Recorder *r)
{
    PyObject *interrupted = PyObject_GetAttrString(r->channel, "interrupted");
    if (interrupted != Py_True)
        return discard(interrupted);
    Py_DECREF(interrupted);
    return discard(PyObject_CallMethod((PyObject *)r, "_raise_interrupt", NULL));
}

int finish_hook(Recorder *r, int failed)
{
    if (!failed && !r->tail_only && !r->ended)
        failed = flush(r) < 0;
    if (failed && PyErr_ExceptionMatches(PyExc_Exception)) {
        end_recording(r);
        failed = 0;
    }
    unlock_recorder(r);
    if (!failed && r->called_python) {
        r->called_python = 0;
        failed = raise_interrupt(r) < 0;
    }
    add_call_space(PyThreadState_Get(), -HOOK_CALLS);
    return failed ? -1 : 0;
}
