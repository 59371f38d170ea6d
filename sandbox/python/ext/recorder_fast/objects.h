/* Records the contents of objects and their changes, without running code of their classes. */
#ifndef OBJECTS_H
#define OBJECTS_H

#include "output.h"

/* Sample holds the items that were read of an object: its first items, or for pairs the keys and then the values. They
 * are borrowed from the object, or from list if Python has sampled them, or the sample owns references to them. */
typedef struct {
    PyObject *items[2 * MAX_SAMPLE], *list;
    Py_ssize_t used, length;
    int owns_items;            /* of a table, whose attributes can change while another thread runs */
    unsigned long long digest; /* of the values of a table */
    char text[48];             /* instead of items: of a Raw, with text_size characters */
    Py_ssize_t text_size;
} Sample;

static inline void clear_sample(Sample *p)
{
    p->list = NULL;
    p->used = p->text_size = 0;
    p->owns_items = 0;
    p->length = -1;
    p->digest = 0;
}

/* Reads the shape, the types and the values of a table into p, some values if it is large. A table that cannot be read
 * without user code or a signal has an empty sample. Returns 0, or -1 with an exception set. */
int peek_table(PyObject *v, Entry *e, Sample *p);

/* Tells whether another array may have memory of this one: it has no memory of its own, or more references than one of
 * a variable and one of the recorder. */
int may_share(PyObject *array);

/* Reads a sample of v into p. Returns 0, or -1 with an exception set. */
int peek(Recorder *r, PyObject *v, Entry *e, Sample *p);

/* Chooses the recorded part of a sample: in shown, ended by NULL, in list, a new reference, or in p->text. Returns its
 * exactness, or -1. */
int select_shown(Recorder *r, PyObject *v, Entry *e, Sample *p, PyObject **shown, PyObject **list);

int prepare_peek(void); /* imports what the functions of peek.c need */
int prepare_tables(void);

void hold_sample(Sample *p); /* while Python code may run */
void release_sample(Sample *p, int held);

/* Returns the reader of a class, which Python describes once; borrowed. */
Reader *reader_of(Recorder *r, PyTypeObject *kind);

/* Returns the entry of an object, borrowed, and records the object if it is new or has changed. */
Entry *entry_of(Recorder *r, PyObject *v, int depth);

/* Records the changes of an object and of the objects that it holds. Returns 0, or -1 with an exception set. */
int record_changes(Recorder *r, PyObject *v, Entry *e, int depth);

int queue_unheld(Recorder *r, Entry *e);
int drop_holder(Recorder *r, Entry *e); /* queues the entry if that was its last holder */
int forget_unheld(Recorder *r);         /* records that the queued objects are free, if still nothing holds them */

void clear_children(Entry *e);
void clear_token(Entry *e);

#endif
