/* The hooks: what all versions of Python share, the trace function of Python 3.11, the callbacks of later versions. */
#ifndef HOOKS_H
#define HOOKS_H

#include "frames.h"

/* Tells whether code is library code, or has no frame of its own in a recording. */
int is_foreign(Recorder *r, PyCodeObject *code);

/* The GIL guards the lock itself. A hook keeps it while Python code that the hook calls lets other threads run. */
void lock_recorder(Recorder *r);
void unlock_recorder(Recorder *r);

/* Begins a hook for user code: locks the recorder. Returns 0 if the recording has ended; the hook then does nothing. */
int begin_hook(Recorder *r);

/* Finishes a hook: writes its records, unlocks the recorder, and raises an interrupt that came while the recorder's
 * Python code ran. If the hook has failed, it ends the recording. Returns 0, or -1 with an exception for the program. */
int finish_hook(Recorder *r, int failed);

/* Records that a frame has reached a line, and stops the program there if the debugger wants that. */
int on_line(Recorder *r, PyFrameObject *frame, Frame *known, long line);

/* Records the exception known->failure, and stops the program if the debugger wants that. error and trace are for the
 * debugger. */
int record_raise(Recorder *r, PyFrameObject *frame, Frame *known, PyObject *error, PyObject *trace);

int prepare_hooks(void);

/* Records that a frame has handled its exception, if it has one. */
int record_handled(Recorder *r, Frame *known);

#if HAS_MONITORING

extern PyTypeObject CallbackType;
extern PyGetSetDef callbacks[]; /* the attributes of Recorder that recorder_monitoring registers with sys.monitoring */

#else

/* The trace function of CPython (Py_tracefunc); self is the Recorder. */
int trace_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg);

/* Installs the frame evaluator, unless the program has one; in that case all code is traced. */
void install_evaluator(void);
void remove_evaluator(void);

/* Tells whether another evaluator has replaced ours: user code may then run untraced. */
int is_evaluator_replaced(void);

#endif

#endif
