/* The trace function of Python 3.11. */
#include "hooks.h"

#if !HAS_MONITORING

#include <opcode.h>

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
    PyObject *kind = PyTuple_GET_ITEM(arg, 0), *error = PyTuple_GET_ITEM(arg, 1), *trace = PyTuple_GET_ITEM(arg, 2);
    if (kind == PyExc_StopIteration || kind == PyExc_StopAsyncIteration) /* error may be a plain value */
        return discard(call_python(r, (PyObject *)r, "_set_failure", "(OO)", known, kind));
    known->thrown = 1;
    if (discard(call_python(r, (PyObject *)r, "_set_failure", "(OOO)", known, kind, error)) < 0)
        return -1;
    if (kind == PyExc_GeneratorExit)
        return 0;
    if (switch_to_frame(r, known) < 0 || read_variables(r, frame, known) < 0)
        return -1;
    return record_raise(r, frame, known, error, trace);
}

int trace_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    Recorder *r = (Recorder *)self;
    if (r->ended || what == PyTrace_OPCODE || (frame != r->last_frame && is_foreign(r, code_in_frame(frame->f_frame))))
        return 0;
    if (!begin_hook(r))
        return 0;
    Frame *known = enter_frame(r, frame);
    int failed = known == NULL ? -1 : 0;
    if (!failed && what == PyTrace_LINE)
        failed = on_line(r, frame, known, PyFrame_GetLineNumber(frame));
    else if (!failed && what == PyTrace_RETURN)
        failed = on_return(r, frame, known, arg);
    else if (!failed && what == PyTrace_EXCEPTION)
        failed = on_exception(r, frame, known, arg);
    return finish_hook(r, failed < 0);
}

#endif
