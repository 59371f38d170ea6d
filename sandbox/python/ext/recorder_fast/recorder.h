/* The types that the parts of the recorder share. module.c says what the extension is. */
#ifndef RECORDER_H
#define RECORDER_H

#include "versions.h"

#include "buffer.h"

/* The same numbers as in recorder_format.py, recorder_objects.py and recorder_ring.py. */
enum {
    ABI_VERSION = 13, /* of the interface to recorder_extension.ExtensionRecorder, which has the same number */
    PUSH = 5, RESUME, SUSPEND, RETURN, UNWIND, FRAME, LINE, SET, GLOBAL, DELETE, FORGET, OBJECT, MUTATE, FREE, RAISE, HANDLED,
    EXACT = 0, TRUNCATED, SAMPLED, UNREAD,
    OPAQUE = 0, ITEMS, PAIRS, ATTRIBUTES, TABLE, DESCRIBED, FRAMED,
    MAX_SHOWN = 16, MAX_SAMPLE = 64, MAX_DEPTH = 4, MAX_TEXT = 4096, MAX_COMPARED_BYTES = 4096,
    RING_HEAD = 4096, RING_SIZE = 256 << 10, MAX_RING_WRITE = RING_SIZE / 2, RING_READ_OFFSET = 64
};

/* Reader says how objects of one class are read: recorder_objects.Reader. From PEEK_LEAF on, they never change.
 * PEEK_PYTHON samples by value, PEEK_PYTHON_ITEMS by identity. */
typedef struct {
    PyObject *reader, *name, *peek;
    PyObject *members; /* (name, descriptor) for each of __slots__; of tables, their classes: tables.classes */
    PyTypeObject *kind;
    int form;
    enum { PEEK_NOTHING, PEEK_LIST, PEEK_TUPLE, PEEK_DICT, PEEK_SET, PEEK_INSTANCE, PEEK_FRAME, PEEK_ARRAY, PEEK_PYTHON,
           PEEK_PYTHON_ITEMS, PEEK_LEAF, PEEK_NUMPY_FLOAT, PEEK_NUMPY_INT, PEEK_TIMESTAMP } how;
    int has_dict;
} Reader;

/* Entry is an object as it was recorded last: recorder_objects.Entry. token has the addresses of the sampled items.
 * The lowest bit of the address of a scalar is set: the entry owns a reference to it. */
typedef struct Entry {
    PyObject_HEAD
    long long number, serial, version, holders;
    unsigned long long checked_at; /* the event at which the object was last compared */
    PyObject *address;             /* of the object, without a reference */
    Reader *reader;
    Py_ssize_t length; /* -1 if the object has none */
    int depth;
    uintptr_t *token;
    PyObject *sample;           /* instead of a token for what Python samples by value */
    unsigned long long digest;  /* of the values of a table */
    unsigned char *body;
    struct Entry **children;
    Py_ssize_t token_size, body_size, child_count;
    Py_ssize_t changing_children; /* those whose contents can change */
} Entry;

/* NumberCache keeps what was found in a dict by numbers: lines, or offsets in code. A number has one place. */
enum { CACHED_NUMBERS = 64 };
typedef struct {
    long long number[CACHED_NUMBERS]; /* plus 1, so that 0 is an empty place */
    PyObject *value[CACHED_NUMBERS];  /* borrowed from the dict, NULL if it has none */
} NumberCache;

/* NamePlaces are the indexes at which a name was last found in two dicts: the namespace, and the recorded variables. */
enum { PLACES_BITS = 8 };
typedef struct {
    PyObject *name; /* without a reference: only compared */
    Py_ssize_t in_names, in_recorded;
} NamePlaces;

/* Code describes a code object: recorder_code.Code. */
typedef struct {
    PyObject *known, *number, *reads, *names_by_line;
    PyObject *names_of_turn; /* by the offset at which a further turn of a loop begins */
    NumberCache *cached_names, *cached_turns; /* of a module: what was found in names_by_line and names_of_turn */
    PyObject *sets_before_calls; /* lines that set a variable, and then may call a function: a set */
    PyObject *comprehensions; /* None, or the line of a step by the offset of its event, 0 for none */
    PyObject **prefixes; /* of the set records of its slots, borrowed from Recorder.set_prefixes */
    PyCodeObject *code;
    struct Frame *spare; /* a frame that has ended, for the next call: making one takes a tenth of a call */
    int is_module, is_task, is_optimized, is_comprehension;
    int is_watched; /* sys.monitoring reports its events */
    int has_hidden_slots; /* for the variables of comprehensions that are inlined into a module */
    long first_line;
} Code;

/* Frame is a frame that runs or is suspended: recorder_code.Frame. */
typedef struct Frame {
    PyObject_HEAD
    long long number, thread, parent, line;
    char suspended, raised, thrown, has_steps;
    int slots;
    Code *code;
    PyObject *turn;      /* the names that the line uses if a further turn of a loop begins in it, borrowed from code */
    PyObject *failure;   /* the record of the exception that leaves the frame */
    PyObject *recorded;  /* variables by name, in a frame whose variables are not in slots */
    PyObject **last;     /* the last recorded value of each slot: a scalar, an Entry or NULL */
} Frame;

/* Recorder is the base class of recorder_extension.ExtensionRecorder. */
typedef struct {
    PyObject_HEAD
    long long steps, current_frame, frames_pushed, budget_step, objects_seen, max_objects;
    unsigned long long event; /* counts events: an object is compared once in each */
    char ended, watch_all, tail_only, called_python;
    char skips_tables; /* tables are not compared now; 2: frames and series are not */
    char array_changed; /* an array that may share its memory with others has changed */
    Py_ssize_t few_names, full_read_interval;
    PyObject *filename, *filename_alias; /* another string that is equal to filename */
    PyObject *channel, *recorded, *names, *helpers, *watched, *set_prefixes, *global_prefixes, *out, *wait, *control, *task_step;
    PyObject *stop_lines; /* where control.line is called: a dict by line, or None for each line */
    PyObject *disable; /* sys.monitoring.DISABLE */
    PyObject *objects, *format; /* a recorder_objects.Objects, which describes new classes; the module recorder_format */
    PyObject *raw;              /* the class library_values.Raw */
    Buffer pending;             /* records that are not in out or in the ring yet */
    Buffer bodies;              /* of the objects that are being recorded: each holds the next */
    Map frames, codes, readers, entries;
    Entry **unheld; /* entries without a holder, which are forgotten unless the next line holds them */
    Py_ssize_t unheld_count, unheld_capacity;
    long long *free_numbers, last_number; /* numbers of forgotten objects, which are used again */
    Py_ssize_t free_count, free_capacity;
    NamePlaces places[1 << PLACES_BITS]; /* by the address of the name */
    PyFrameObject *last_frame;
    Frame *last_known;
    PyThread_type_lock wake; /* released for a moment when a hook ends and other threads wait */
    int busy, waiting, woken;
    Py_buffer ring;
    unsigned long long written;
    long long ring_space;
} Recorder;

extern PyTypeObject RecorderType, EntryType, FrameType;

#define IS_ENTRY(object) Py_IS_TYPE(object, &EntryType)

#endif
