/* Repeatable clocks and randomness: inputs.c. */
#ifndef INPUTS_H
#define INPUTS_H

#include "batch.h"

/* Tells whether this library is preloaded, so that its functions replace those of the C library. */
int has_inputs(void);

PyObject *begin_inputs(PyObject *module, PyObject *args);
PyObject *end_inputs(PyObject *module, PyObject *unused);
PyObject *pause_inputs(PyObject *module, PyObject *unused);
PyObject *resume_inputs(PyObject *module, PyObject *was_active);

#endif
