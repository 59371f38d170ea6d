/* The output of records: scalars as bytes, and the ring that the supervisor empties. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "recorder.h"

/* Moves the pending records to out, to which Python code appends. Call it before Python code that may write records. */
int drain(Recorder *r);

/* Writes the pending records and those in out to the ring. */
int flush(Recorder *r);

#if HAS_MONITORING
static inline int pause_evaluator(void) { return 0; }
static inline void resume_evaluator(void) {}
#else
/* Runs Python code of the recorder without the frame evaluator, with which each of its calls takes twice as long. Does
 * nothing and returns 0 if there are other threads: their calls may need the evaluator meanwhile. */
int pause_evaluator(void);
void resume_evaluator(void);
#endif

/* Calls a method of the Python side, after drain. format, for example "(O)", builds the tuple of its arguments. Returns a
 * new reference, or NULL. */
PyObject *call_python(Recorder *r, PyObject *object, const char *method, const char *format, ...);

/* Releases the result of a call. Returns -1 if the call failed. */
static inline int discard(PyObject *result)
{
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* Tells whether values of a class are written whole: recorder_format.SCALARS. */
static inline int is_scalar(PyTypeObject *kind)
{
    return kind == &PyLong_Type || kind == &PyUnicode_Type || kind == &PyFloat_Type || kind == &PyBool_Type ||
           kind == Py_TYPE(Py_None) || kind == &PyBytes_Type || kind == &PyComplex_Type || kind == &PyEllipsis_Type;
}

/* Appends prefix, a bytes object or NULL, and a scalar. Returns 1, 0 without appending if value is an object, or -1. */
int append_scalar(Recorder *r, Buffer *b, PyObject *prefix, PyObject *value);

#endif
