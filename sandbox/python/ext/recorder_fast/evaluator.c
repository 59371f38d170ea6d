/* A frame evaluator (PEP 523) that runs library code at full speed.
 *
 * While a thread is traced, CPython 3.11 computes the line of every instruction, in every file. The code that starts a frame
 * can switch this off, and an evaluator starts frames. User code that a library calls passes through the evaluator again.
 *
 * With an evaluator, a Python call also uses the C stack, which may be too small for a program with a high recursion limit.
 * Beyond MAX_NESTED calls the evaluator is suspended, and all code is traced. */
#include "hooks.h"

#if !HAS_MONITORING

#define NEED_OPCODE_TABLES
#define Py_BUILD_CORE
#include <internal/pycore_opcode.h>
#undef Py_BUILD_CORE
#include <opcode.h>

enum { MAX_NESTED = 256, FIXED_SUBSCRIPTS = 0x030b0400 /* Python 3.11.4 */ };

static int nested;    /* number of nested evaluators, in all threads */
static int suspended; /* Python runs without the evaluator, because too many are nested */
static int installed; /* the evaluator was installed since the recorder was attached */
static Py_ssize_t extra_index = -1;

/* Permanently disables the specialisation of subscripts in library code: before Python 3.11.4 a specialised subscript calls
 * __getitem__ without the evaluator. Returns 0 as long as CPython has not specialised the code yet. */
static int despecialize_subscripts(PyCodeObject *code)
{
    void *done = NULL;
    if (Py_Version >= FIXED_SUBSCRIPTS || (_PyCode_GetExtra((PyObject *)code, extra_index, &done) == 0 && done != NULL))
        return 1;
    if (code->co_warmup != 0)
        return 0;
    for (Py_ssize_t i = 0; i < Py_SIZE(code); i++) {
        _Py_CODEUNIT *at = _PyCode_CODE(code) + i;
        int opcode = _PyOpcode_Deopt[_Py_OPCODE(*at)];
        if (opcode == BINARY_SUBSCR)
            _Py_SET_OPCODE(*at, BINARY_SUBSCR);
        i += _PyOpcode_Caches[opcode];
    }
    if (_PyCode_SetExtra((PyObject *)code, extra_index, code) < 0)
        PyErr_Clear();
    return 1;
}

static void set_evaluator(_PyFrameEvalFunction f) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), f); }

static int is_evaluator(_PyFrameEvalFunction f) { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == f; }

/* Suspends the evaluator. Running frames do not pass through it again, so tracing is switched on for them. */
static void suspend_evaluator(void)
{
    suspended = 1;
    set_evaluator(_PyEval_EvalFrameDefault);
    for (PyThreadState *t = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); t != NULL; t = PyThreadState_Next(t))
        if (t->c_tracefunc == trace_event)
            t->cframe->use_tracing = 255;
}

/* Runs a frame, traced or not. If the program has its own tracer or profiler, all code is traced. */
static PyObject *evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int throwing)
{
    if (thread->c_tracefunc != trace_event || thread->c_profilefunc != NULL || thread->tracing)
        return _PyEval_EvalFrameDefault(thread, frame, throwing);
    _PyCFrame *caller = thread->cframe;
    int before = caller->use_tracing;
    if (++nested > MAX_NESTED && !suspended)
        suspend_evaluator();
    int untraced = !suspended && is_foreign((Recorder *)thread->c_traceobj, frame->f_code) && despecialize_subscripts(frame->f_code);
    caller->use_tracing = untraced ? 0 : 255;
    PyObject *result = _PyEval_EvalFrameDefault(thread, frame, throwing);
    if (thread->c_tracefunc == trace_event && thread->c_profilefunc == NULL) /* the program has set no other */
        caller->use_tracing = suspended ? 255 : before;
    if (--nested < MAX_NESTED / 2 && suspended) {
        suspended = 0;
        set_evaluator(evaluate);
    }
    return result;
}

void install_evaluator(void)
{
    if (Py_Version < FIXED_SUBSCRIPTS && extra_index < 0)
        extra_index = _PyEval_RequestCodeExtraIndex(NULL);
    if (is_evaluator(_PyEval_EvalFrameDefault) && !suspended && (Py_Version >= FIXED_SUBSCRIPTS || extra_index >= 0)) {
        installed = 1;
        set_evaluator(evaluate);
    }
}

void remove_evaluator(void)
{
    if (is_evaluator(evaluate))
        set_evaluator(_PyEval_EvalFrameDefault);
    installed = suspended = 0;
}

int pause_evaluator(void)
{
    PyThreadState *first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    if (!is_evaluator(evaluate) || PyThreadState_Next(first) != NULL)
        return 0;
    set_evaluator(_PyEval_EvalFrameDefault);
    return 1;
}

void resume_evaluator(void)
{
    if (installed && !suspended && is_evaluator(_PyEval_EvalFrameDefault))
        set_evaluator(evaluate);
}

int is_evaluator_replaced(void) { return installed && !suspended && !is_evaluator(evaluate); }

#endif
