/* The trace function, the lock that lets one hook run at a time, and the frame evaluator that leaves libraries untraced. */
#ifndef HOOKS_H
#define HOOKS_H

#include "frames.h"

/* The trace function of CPython (Py_tracefunc); self is the Recorder. */
int trace_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);

/* Tells whether code is library code, or has no frame of its own in a recording. */
int is_foreign(Recorder *r, PyCodeObject *code);

/* The GIL guards the lock itself. A hook keeps it while Python code that the hook calls lets other threads run. */
void lock_recorder(Recorder *r);
void unlock_recorder(Recorder *r);

/* Installs the frame evaluator, unless the program has one; in that case all code is traced. */
void install_evaluator(void);
void remove_evaluator(void);

/* Tells whether another evaluator has replaced ours: user code may then run untraced. */
int is_evaluator_replaced(void);

#endif
