/* Frames, and the variables that can be read in them. */
#ifndef FRAMES_H
#define FRAMES_H

#include "variables.h"

/* Returns the kind of a slot in the frames of a code object: bits of CO_FAST_... */
static inline int kind_of_slot(PyCodeObject *co, int i)
{
    return (unsigned char)PyBytes_AS_STRING(co->co_localspluskinds)[i];
}

/* Returns the variable in a slot of a frame, or in the cell in that slot; borrowed, NULL if the variable is not set. */
PyObject *variable_in_slot(RunningFrame *frame, PyCodeObject *co, int i);

/* Returns the description of a frame, borrowed. A new frame is recorded as pushed, a suspended frame as resumed. */
Frame *enter_frame(Recorder *r, PyFrameObject *frame);

/* Appends the record that the next records belong to this frame, unless it is the current frame already. */
int switch_to_frame(Recorder *r, Frame *known);

/* Returns the value of an int in a dict; borrowed, NULL without an exception if there is none. */
PyObject *get_by_number(PyObject *dict, long long number);

/* get_by_number for a dict that does not change. */
PyObject *get_cached(NumberCache *cache, PyObject *dict, long long number);

/* Records the changes of the variables that the frame can reach. */
int read_variables(Recorder *r, PyFrameObject *frame, Frame *known);

/* Records that a frame returns value (RETURN), yields it (SUSPEND), or is left by an exception (UNWIND; value is NULL). */
int leave_frame(Recorder *r, PyFrameObject *frame, Frame *known, int record, PyObject *value);

#endif
