/* What the parts of the recorder's extension share; recorder_fast.c says what it is. */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE
#define NEED_OPCODE_TABLES
#include <Python.h>
#include <structmember.h>
#include <opcode.h>
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_object.h>
#include <internal/pycore_opcode.h>
#undef Py_BUILD_CORE

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#error "frames and objects are read as Python 3.11 has them"
#endif

/* The numbers of recorder_format.py, recorder_values.py and recorder_ring.py. */
enum {
    FORM = 2, /* of what recorder_trace.FastRecorder relies on: it has the same */
    PUSH = 5, RESUMED, SUSPEND, RETURN, UNWIND, FRAME, LINE, SET, GLOBAL, DELETE, FORGET, OBJECT, MUTATE, FREE, RAISE, HANDLED,
    EXACT = 0, TRUNCATED, SAMPLED, UNREAD,
    OPAQUE = 0, ITEMS, PAIRS, ATTRIBUTES, TABLE,
    SHOWN = 16, SAMPLE = 64, DEPTH = 4, MAX_TEXT = 4096,
    RING_HEAD = 4096, RING_SIZE = 256 << 10, RING_MOST = RING_SIZE / 2, RING_READ = 64,
    ROOM = 52 /* calls that are left where recording ends: what recorder.MARGIN comes to */
};

/* Bytes that grow. */
typedef struct {
    unsigned char *at;
    Py_ssize_t used, size;
} Bytes;

/* Pointers by pointer: open addressing, a power of two. */
typedef struct {
    void **keys, **values;
    size_t size, used; /* used counts those that were removed, too */
} Map;

/* How objects of one class are read: recorder_values.Reader. */
typedef struct {
    PyObject *reader, *name, *peek, *members; /* members: (name, descriptor) of each slot */
    PyTypeObject *kind;
    int form;
    enum { NOTHING, LIST, TUPLE, DICT, SETS, INSTANCE, DATAFRAME, ARRAY, OTHER } how;
    int has_dict;
} Shape;

/* One object as it was recorded last: recorder_values.Entry. Items are known by their
 * addresses; of scalars, which are held, the lowest bit is set. */
typedef struct Entry {
    PyObject_HEAD
    long long number, serial, version, held;
    unsigned long long seen;
    PyObject *address; /* of the object: not a reference to it */
    Shape *shape;
    Py_ssize_t length; /* -1: it has none */
    int depth;
    uintptr_t *token;
    PyObject *made, *dtype; /* instead of a token, where what is read is made afresh; an array's type */
    unsigned char *body;
    struct Entry **children;
    Py_ssize_t tokens, bodies, childs;
} Entry;

/* What is known of a code object: recorder_code.Code. */
typedef struct {
    PyObject *known, *number, *reads, *named, **heads;
    PyCodeObject *code;
    int module, task, optimised;
    long first;
} Code;

/* A frame that runs or is suspended: recorder_code.Frame. */
typedef struct {
    PyObject_HEAD
    long long number, lane, parent, line, depth;
    char suspended, raised, thrown;
    int slots;
    Code *code;
    PyObject *failure;
    PyObject *seen;  /* variables by name, where they are no slots */
    PyObject **last; /* what was recorded of each slot: a scalar, an Entry or NULL */
} Frame;

typedef struct {
    PyObject_HEAD
    long long count, current, pushed, mark, objects_count, most_objects;
    unsigned long long tick;
    char over, whole, kept, called;
    Py_ssize_t few, every;
    PyObject *filename, *alias; /* another string that is the same */
    PyObject *channel, *seen, *names, *given, *watched, *set_heads, *global_heads, *out, *wait, *control, *task_step;
    PyObject *objects, *format; /* a recorder_values.Objects, for classes that are new; recorder_format */
    Bytes pending;
    Map frames, codes, shapes, table;
    Entry **unheld;
    Py_ssize_t unheld_used, unheld_size;
    long long *free, numbers; /* of objects: those that are to be given again, and the last that is new */
    Py_ssize_t free_used, free_size;
    PyFrameObject *last_frame;
    Frame *last_known;
    PyThread_type_lock wake; /* held, but for a moment when a hook ends that others wait for */
    int busy, waiting, woken;
    Py_buffer ring;
    unsigned long long written;
    long long room;
} State;

static PyTypeObject StateType, EntryType, FrameType;

#define IS_ENTRY(object) Py_IS_TYPE(object, &EntryType)
