/* Code that is not the user's runs at full speed. While a thread is traced, CPython 3.11
 * works out the line of each instruction, wherever that is; but whether it does is said by
 * each frame's caller, and an evaluator of frames (PEP 523) may say it. What libraries call
 * of the user's comes by the evaluator again.
 *
 * With an evaluator a call in Python is one in C, too, and takes of the C stack, which a
 * program with a high recursion limit has other uses for. So from DEEP calls on, Python does
 * without, and all is traced. */

enum { DEEP = 256 };

static int nested; /* evaluators that run now, of all threads */
static int aside;  /* Python does without */
static int begun;  /* since the recorder was attached */
static Py_ssize_t seen_index = -1;

static int trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);

/* Before 3.11.4 a subscript that was made quick calls a __getitem__ past the evaluator. So
 * subscripts of libraries stay slow, once and for all; returns 0 where it is too early. */
static int subscripts_are_slow(PyCodeObject *code)
{
    void *seen = NULL;
    if (Py_Version >= 0x030b0400 || (_PyCode_GetExtra((PyObject *)code, seen_index, &seen) == 0 && seen != NULL))
        return 1;
    if (code->co_warmup != 0) /* they are made quick when it has run some times */
        return 0;
    for (Py_ssize_t i = 0; i < Py_SIZE(code); i++) {
        _Py_CODEUNIT *at = _PyCode_CODE(code) + i;
        int opcode = _PyOpcode_Deopt[_Py_OPCODE(*at)];
        if (opcode == BINARY_SUBSCR)
            _Py_SET_OPCODE(*at, BINARY_SUBSCR);
        i += _PyOpcode_Caches[opcode];
    }
    if (_PyCode_SetExtra((PyObject *)code, seen_index, code) < 0)
        PyErr_Clear();
    return 1;
}

static void set_evaluator(_PyFrameEvalFunction f) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), f); }

static int is_evaluator(_PyFrameEvalFunction f) { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == f; }

/* Has Python do without the evaluator: then what runs already, and so is not come back
 * to from an evaluator, is traced as well. */
static void set_aside(void)
{
    aside = 1;
    set_evaluator(_PyEval_EvalFrameDefault);
    for (PyThreadState *t = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); t != NULL; t = PyThreadState_Next(t))
        if (t->c_tracefunc == trace)
            t->cframe->use_tracing = 255;
}

/* Runs a frame, traced or not. A tracer or profiler of the program's sees all. */
static PyObject *evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int throwing)
{
    if (thread->c_tracefunc != trace || thread->c_profilefunc != NULL || thread->tracing)
        return _PyEval_EvalFrameDefault(thread, frame, throwing);
    _PyCFrame *caller = thread->cframe;
    int before = caller->use_tracing;
    if (++nested > DEEP && !aside)
        set_aside();
    int untraced = !aside && foreign((State *)thread->c_traceobj, frame->f_code) && subscripts_are_slow(frame->f_code);
    caller->use_tracing = untraced ? 0 : 255;
    PyObject *result = _PyEval_EvalFrameDefault(thread, frame, throwing);
    if (thread->c_tracefunc == trace && thread->c_profilefunc == NULL) /* or it says what has changed */
        caller->use_tracing = aside ? 255 : before;
    if (--nested < DEEP / 2 && aside) {
        aside = 0;
        set_evaluator(evaluate);
    }
    return result;
}

/* Unless there is an evaluator of somebody else's: then all is traced. */
static void begin_evaluating(void)
{
    if (Py_Version < 0x030b0400 && seen_index < 0)
        seen_index = _PyEval_RequestCodeExtraIndex(NULL);
    if (is_evaluator(_PyEval_EvalFrameDefault) && !aside && (Py_Version >= 0x030b0400 || seen_index >= 0)) {
        begun = 1;
        set_evaluator(evaluate);
    }
}

static void end_evaluating(void)
{
    if (is_evaluator(evaluate))
        set_evaluator(_PyEval_EvalFrameDefault);
    begun = aside = 0;
}

/* Whether somebody else's has taken its place, past which the user's code may run unseen. */
static int evaluator_lost(void) { return begun && !aside && !is_evaluator(evaluate); }
