/* Variables as records, as in recorder_variables.py. */
#ifndef VARIABLES_H
#define VARIABLES_H

#include "objects.h"

/* Tells whether a variable of this name is left out of recordings. */
int is_hidden(int record, PyObject *name);

/* Returns the first bytes of a record that sets a name; borrowed. */
PyObject *prefix_of(Recorder *r, int record, PyObject *name);

/* Records the value of a variable if it is new. old is the last recorded value: a scalar, an Entry or NULL. Returns 1 with a
 * new reference in *recorded if the value has changed, 0 if not, or -1. */
int record_value(Recorder *r, int record, PyObject *prefix, PyObject *old, PyObject *value, PyObject **recorded);

/* Recorder._record_variable for variables that are recorded in a dict. helpers, which may be NULL, has values to leave out. */
int record_in_dict(Recorder *r, int record, PyObject *recorded, PyObject *name, PyObject *value, PyObject *helpers);

/* Recorder._record_deletion. */
int delete_from_dict(Recorder *r, int record, PyObject *recorded, PyObject *name);

/* Appends a record that has only a name. */
int append_name_record(Recorder *r, int record, PyObject *name);

/* Returns a variable of the namespace; borrowed, NULL if there is none. */
PyObject *find_name(Recorder *r, PyObject *name);

/* Records the changes of these variables of the namespace, a tuple of names. */
int read_namespace(Recorder *r, PyObject *names);

#endif
