/* The recorder's fast path: line events and the reading of a frame's variables, in C.
 *
 * State is a base class of recorder_trace.FastRecorder, which has all the rest: what is
 * rare (a call, a return, an exception, an object that is new or changes) is done by
 * its methods in Python, on the same tables, so the records are the same. Variables are
 * read from the frame's slots: nothing is written back, so frames of closures are read
 * as well.
 *
 * Built where a compiler is there, for the Python that will load it:
 *
 *     gcc -O2 -shared -fPIC -I$(python -c 'import sysconfig; print(sysconfig.get_paths()["include"])') \
 *         recorder_fast.c -o recorder_fast$(python -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
 *
 * References: State owns what its fields name; values of variables are borrowed from
 * their frame or namespace, and held while Python code of ours runs on them.
 */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE
#include <Python.h>
#include <structmember.h>
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#error "the slots of a frame are read as Python 3.11 has them"
#endif

enum { SET = 12, GLOBAL = 13, SAMPLE = 64, ROOM = 4096, TEXT = 1024 };

typedef struct {
    PyObject_HEAD
    long long count, current, mark;
    char over, whole;
    Py_ssize_t few, every, flush;
    PyObject *filename, *frames, *seen, *names, *given, *watched, *set_heads, *global_heads;
    PyObject *writer, *out, *objects, *unheld, *lock, *entry_type;
    /* where the slots of Frame, Code, Entry and Reader are in their objects */
    Py_ssize_t f_number, f_code, f_line, f_seen, f_suspended, f_raised, f_thrown;
    Py_ssize_t c_module, c_reads, c_named, e_address, e_kind, e_version, e_length, e_token, e_children, e_reader, r_peek;
    int ready;
} State;

/* What is gathered for one event. */
typedef struct {
    State *state;
    Py_ssize_t used;
    unsigned char bytes[ROOM];
} Batch;

static PyObject *str_set, *str_check, *str_settle, *str_namespace, *str_flush, *str_locked, *str_event, *str_call;
static PyObject *str_what[8];

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static int drain(Batch *b)
{
    if (b->used == 0)
        return 0;
    PyObject *out = b->state->out;
    Py_ssize_t size = PyByteArray_GET_SIZE(out);
    if (PyByteArray_Resize(out, size + b->used) < 0)
        return -1;
    memcpy(PyByteArray_AS_STRING(out) + size, b->bytes, b->used);
    b->used = 0;
    return 0;
}

static void number(Batch *b, unsigned long long n)
{
    while (n > 127) {
        b->bytes[b->used++] = (unsigned char)(n & 127) | 128;
        n >>= 7;
    }
    b->bytes[b->used++] = (unsigned char)n;
}

/* The value's bytes after head; 0 where only Python can write them. */
static int scalar(Batch *b, PyObject *head, PyObject *value)
{
    Py_ssize_t size = PyBytes_GET_SIZE(head), text = 0;
    const char *data = NULL;
    long long integer = 0;
    PyTypeObject *kind = Py_TYPE(value);
    if (kind == &PyLong_Type) {
        int overflow;
        integer = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || integer >= 1LL << 62 || integer <= -(1LL << 62))
            return 0;
    } else if (kind == &PyUnicode_Type) {
        if (!PyUnicode_IS_COMPACT_ASCII(value) || PyUnicode_GET_LENGTH(value) > TEXT)
            return 0;
        text = PyUnicode_GET_LENGTH(value);
        data = (const char *)PyUnicode_1BYTE_DATA(value);
    } else if (kind != &PyFloat_Type && kind != &PyBool_Type && value != Py_None)
        return 0;
    if (size > 32)
        return 0;
    if (b->used + size + text + 16 > ROOM && drain(b) < 0)
        return -1;
    memcpy(b->bytes + b->used, PyBytes_AS_STRING(head), size);
    b->used += size;
    if (kind == &PyLong_Type) {
        b->bytes[b->used++] = 'i';
        number(b, ((unsigned long long)integer << 1) ^ (unsigned long long)(integer >> 63));
    } else if (kind == &PyUnicode_Type) {
        b->bytes[b->used++] = 's';
        number(b, (unsigned long long)text);
        memcpy(b->bytes + b->used, data, text);
        b->used += text;
    } else if (kind == &PyFloat_Type) {
        double d = PyFloat_AS_DOUBLE(value);
        b->bytes[b->used++] = 'f';
        PyFloat_Pack8(d, (char *)b->bytes + b->used, 1);
        b->used += 8;
    } else
        b->bytes[b->used++] = value == Py_None ? 'N' : value == Py_True ? 'T' : 'F';
    return 1;
}

/* Whether a list, tuple or dict of scalars is as it was: the identity of the items. */
static int unchanged(State *s, PyObject *entry, PyObject *value)
{
    PyObject *token = SLOT(entry, s->e_token), *length = SLOT(entry, s->e_length), *children = SLOT(entry, s->e_children);
    if (token == NULL || !PyList_CheckExact(token) || length == NULL || !PyLong_CheckExact(length) || children == NULL ||
        PyObject_Size(children) != 0)
        return 0;
    Py_ssize_t known = PyList_GET_SIZE(token), size = PyLong_AsSsize_t(length), shown;
    if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
        shown = size < SAMPLE ? size : SAMPLE;
        if (Py_SIZE(value) != size || known != shown)
            return 0;
        PyObject **items = PyList_CheckExact(value) ? ((PyListObject *)value)->ob_item : ((PyTupleObject *)value)->ob_item;
        for (Py_ssize_t i = 0; i < shown; i++)
            if (PyLong_AsVoidPtr(PyList_GET_ITEM(token, i)) != (void *)items[i])
                return 0;
        return 1;
    }
    if (PyDict_CheckExact(value)) {
        PyObject *key, *item;
        Py_ssize_t at = 0, i = 0;
        shown = size < SAMPLE ? size : SAMPLE;
        if (PyDict_GET_SIZE(value) != size || known != 2 * shown)
            return 0;
        for (; i < shown && PyDict_Next(value, &at, &key, &item); i++)
            if (PyLong_AsVoidPtr(PyList_GET_ITEM(token, i)) != (void *)key ||
                PyLong_AsVoidPtr(PyList_GET_ITEM(token, shown + i)) != (void *)item)
                return 0;
        return i == shown;
    }
    return 0;
}

/* Records one variable, if it has changed. old and value are not NULL or NULL: not there. */
static int variable(Batch *b, int record, PyObject *seen, PyObject *name, PyObject *old, PyObject *value)
{
    State *s = b->state;
    if (old == value)
        return 0;
    PyTypeObject *kind = Py_TYPE(value);
    int entry = old != NULL && (PyObject *)Py_TYPE(old) == s->entry_type;
    if (entry) {
        if (PyLong_AsVoidPtr(SLOT(old, s->e_address)) == (void *)value && PyLong_AsVoidPtr(SLOT(old, s->e_kind)) == (void *)kind &&
            PyLong_AsLong(SLOT(old, s->e_version)) > 0) {
            PyObject *reader = SLOT(old, s->e_reader);
            if (SLOT(reader, s->r_peek) == Py_None || unchanged(s, old, value))
                return 0;
            if (drain(b) < 0)
                return -1;
            PyObject *done = PyObject_CallMethodObjArgs(s->objects, str_check, value, old, NULL);
            Py_XDECREF(done);
            return done == NULL ? -1 : 0;
        }
    } else {
        if (old != NULL && Py_TYPE(old) == kind && (kind == &PyLong_Type || kind == &PyUnicode_Type)) {
            int same = PyObject_RichCompareBool(old, value, Py_EQ);
            if (same)
                return same < 0 ? -1 : PyDict_SetItem(seen, name, value);
        }
        PyObject *head = PyDict_GetItemWithError(record == SET ? s->set_heads : s->global_heads, name);
        int written = head == NULL ? 0 : scalar(b, head, value);
        if (written)
            return written < 0 ? -1 : PyDict_SetItem(seen, name, value);
    }
    if (PyErr_Occurred() || drain(b) < 0)
        return -1;
    PyObject *done;
    if (record == GLOBAL) { /* which knows what is not shown */
        PyObject *one = PyTuple_Pack(1, name);
        done = one == NULL ? NULL : PyObject_CallMethodObjArgs((PyObject *)s, str_namespace, one, NULL);
        Py_XDECREF(one);
    } else {
        PyObject *code = PyLong_FromLong(record);
        done = code == NULL ? NULL : PyObject_CallMethodObjArgs((PyObject *)s, str_set, code, seen, name, old ? old : Py_None, value, NULL);
        Py_XDECREF(code);
    }
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Names of the namespace. */
static int namespace(Batch *b, PyObject *which)
{
    State *s = b->state;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(which); i++) {
        PyObject *name = PyTuple_GET_ITEM(which, i);
        PyObject *value = PyDict_GetItemWithError(s->names, name), *old = PyDict_GetItemWithError(s->seen, name);
        if (value == old || (value != NULL && PyDict_GetItemWithError(s->given, name) == value))
            continue;
        int failed;
        if (value == NULL) { /* it is gone */
            PyObject *one = drain(b) < 0 ? NULL : PyTuple_Pack(1, name);
            PyObject *done = one == NULL ? NULL : PyObject_CallMethodObjArgs((PyObject *)s, str_namespace, one, NULL);
            failed = done == NULL;
            Py_XDECREF(one);
            Py_XDECREF(done);
        } else {
            Py_INCREF(value);
            Py_XINCREF(old);
            failed = variable(b, GLOBAL, s->seen, name, old, value);
            Py_DECREF(value);
            Py_XDECREF(old);
        }
        if (failed)
            return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* The frame's own variables, from its slots. */
static int locals(Batch *b, PyFrameObject *frame, PyObject *seen)
{
    PyCodeObject *code = frame->f_frame->f_code;
    for (int i = 0; i < code->co_nlocalsplus; i++) {
        PyObject *value = frame->f_frame->localsplus[i];
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        unsigned char kind = (unsigned char)PyBytes_AS_STRING(code->co_localspluskinds)[i];
        if (value != NULL && kind & (CO_FAST_CELL | CO_FAST_FREE) && PyCell_Check(value))
            value = PyCell_GET(value);
        if (PyUnicode_READ_CHAR(name, 0) == '.' ||
            (PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_'))
            continue;
        PyObject *old = PyDict_GetItemWithError(seen, name);
        if (value == old)
            continue;
        Py_XINCREF(old);
        int failed;
        if (value == NULL) {
            PyObject *done = drain(b) < 0 ? NULL : PyObject_CallMethod((PyObject *)b->state, "_delete", "iOO", 14, seen, name);
            failed = done == NULL;
            Py_XDECREF(done);
        } else {
            Py_INCREF(value);
            failed = variable(b, SET, seen, name, old, value);
            Py_DECREF(value);
        }
        Py_XDECREF(old);
        if (failed)
            return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* What the frame can reach; -2 where Python has to look. */
static int look(Batch *b, PyFrameObject *frame, PyObject *known)
{
    State *s = b->state;
    PyObject *code = SLOT(known, s->f_code);
    if (SLOT(code, s->c_module) == Py_True) {
        if (s->whole)
            return -2;
        if (PyTuple_GET_SIZE(s->watched) <= s->few || s->count % s->every == 0)
            return namespace(b, s->watched);
        PyObject *named = PyDict_GetItemWithError(SLOT(code, s->c_named), SLOT(known, s->f_line));
        return named == NULL ? (PyErr_Occurred() ? -1 : 0) : namespace(b, named);
    }
    if (!(frame->f_frame->f_code->co_flags & CO_OPTIMIZED))
        return -2;
    if (locals(b, frame, SLOT(known, s->f_seen)) < 0)
        return -1;
    return namespace(b, SLOT(code, s->c_reads));
}

/* A line event; -2 where it is Python's. */
static int line(State *s, PyFrameObject *frame)
{
    PyObject *known = PyDict_GetItemWithError(s->frames, (PyObject *)frame);
    if (known == NULL || s->count + 1 >= s->mark || SLOT(known, s->f_suspended) != Py_False || SLOT(known, s->f_raised) != Py_False ||
        PyLong_AsLongLong(SLOT(known, s->f_number)) != s->current)
        return -2;
    PyObject *locked = PyObject_CallMethodNoArgs(s->lock, str_locked);
    if (locked == NULL)
        return -1;
    Py_DECREF(locked);
    if (locked != Py_False) /* another thread is in the middle of a record */
        return -2;
    long before = PyLong_AsLong(SLOT(known, s->f_line)), now = PyFrame_GetLineNumber(frame);
    Batch b = {.state = s};
    Py_INCREF(known);
    PyObject *tick = PyObject_CallMethod(s->objects, "next", NULL);
    Py_XDECREF(tick);
    int got = tick == NULL ? -1 : look(&b, frame, known);
    if (got == 0 && PyList_GET_SIZE(s->unheld) > 0) {
        PyObject *done = drain(&b) < 0 ? NULL : PyObject_CallMethodNoArgs(s->objects, str_settle);
        Py_XDECREF(done);
        got = done == NULL ? -1 : 0;
    }
    if (got == 0) {
        if (b.used + 16 > ROOM && drain(&b) < 0)
            got = -1;
        long delta = now - before;
        if (delta >= -64 && delta < 64)
            b.bytes[b.used++] = (unsigned char)(delta + 0xc0);
        else {
            b.bytes[b.used++] = 11;
            number(&b, ((unsigned long long)delta << 1) ^ (unsigned long long)(delta >> 63));
        }
        PyObject *fresh = PyLong_FromLong(now);
        if (fresh == NULL || drain(&b) < 0)
            got = -1;
        else {
            Py_SETREF(SLOT(known, s->f_line), fresh);
            Py_INCREF(Py_False);
            Py_SETREF(SLOT(known, s->f_thrown), Py_False);
            s->count++;
        }
    }
    Py_DECREF(known);
    if (got == 0 && PyByteArray_GET_SIZE(s->out) >= s->flush) {
        PyObject *done = PyObject_CallMethodNoArgs((PyObject *)s, str_flush);
        Py_XDECREF(done);
        got = done == NULL ? -1 : 0;
    }
    return got;
}

/* Whether it is a comprehension's or generator expression's, which have no frames of
 * their own in a recording: <listcomp>, <setcomp>, <dictcomp>, <genexpr>. */
static int inner(PyObject *name)
{
    if (PyUnicode_GET_LENGTH(name) < 3 || PyUnicode_READ_CHAR(name, 0) != '<')
        return 0;
    Py_UCS4 c = PyUnicode_READ_CHAR(name, 1);
    return c == 's' || c == 'd' || c == 'g' || (c == 'l' && PyUnicode_READ_CHAR(name, 2) == 'i');
}

static int trace(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    State *s = (State *)self;
    PyObject *filename = frame->f_frame->f_code->co_filename;
    if (s->over || (filename != s->filename && PyUnicode_Compare(filename, s->filename) != 0) || what == PyTrace_OPCODE ||
        inner(frame->f_frame->f_code->co_name))
        return 0;
    int got = what == PyTrace_LINE ? line(s, frame) : -2;
    if (got == -2) {
        PyObject *value = arg ? arg : Py_None;
        PyObject *done = PyObject_CallMethodObjArgs(self, what == PyTrace_CALL ? str_call : str_event, (PyObject *)frame, str_what[what], value, NULL);
        got = done == NULL ? -1 : 0;
        Py_XDECREF(done);
    }
    if (got < 0) { /* never the program's affair, but for an interrupt */
        if (PyErr_ExceptionMatches(PyExc_Exception)) {
            PyObject *type, *value, *where;
            PyErr_Fetch(&type, &value, &where);
            PyErr_NormalizeException(&type, &value, &where);
            PyObject *done = PyObject_CallMethod(self, "_failed", "O", value);
            Py_XDECREF(done);
            PyErr_Clear();
            Py_XDECREF(type);
            Py_XDECREF(value);
            Py_XDECREF(where);
            s->over = 1;
            return 0;
        }
        return -1;
    }
    return 0;
}

static PyObject *attach(PyObject *self, PyObject *none)
{
    PyEval_SetTrace(trace, self);
    Py_RETURN_NONE;
}

static PyObject *detach(PyObject *self, PyObject *none)
{
    PyEval_SetTrace(NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *attached(PyObject *self, PyObject *none)
{
    PyThreadState *t = PyThreadState_Get();
    return PyBool_FromLong(t->c_tracefunc == trace && t->c_traceobj == self);
}

/* read(frame, known): True where it is done. */
static PyObject *read_frame(PyObject *self, PyObject *args)
{
    PyObject *frame, *known;
    if (!PyArg_ParseTuple(args, "O!O", &PyFrame_Type, &frame, &known))
        return NULL;
    Batch b = {.state = (State *)self};
    int got = look(&b, (PyFrameObject *)frame, known);
    if (got == -1 || drain(&b) < 0)
        return NULL;
    return PyBool_FromLong(got == 0);
}

static int offset(PyObject *type, const char *name, Py_ssize_t *at)
{
    PyObject *member = PyObject_GetAttrString(type, name);
    if (member == NULL)
        return -1;
    if (!Py_IS_TYPE(member, &PyMemberDescr_Type)) {
        PyErr_Format(PyExc_TypeError, "%s is no slot", name);
        Py_DECREF(member);
        return -1;
    }
    *at = ((PyMemberDescrObject *)member)->d_member->offset;
    Py_DECREF(member);
    return 0;
}

/* slots(Frame, Code, Entry, Reader): where they keep what is read here. */
static PyObject *slots(PyObject *self, PyObject *args)
{
    State *s = (State *)self;
    PyObject *f, *c, *e, *r;
    if (!PyArg_ParseTuple(args, "OOOO", &f, &c, &e, &r))
        return NULL;
    Py_INCREF(e);
    Py_XSETREF(s->entry_type, e);
    if (offset(f, "number", &s->f_number) || offset(f, "code", &s->f_code) || offset(f, "line", &s->f_line) || offset(f, "seen", &s->f_seen) ||
        offset(f, "suspended", &s->f_suspended) || offset(f, "raised", &s->f_raised) || offset(f, "thrown", &s->f_thrown) ||
        offset(c, "module", &s->c_module) || offset(c, "reads", &s->c_reads) || offset(c, "named", &s->c_named) ||
        offset(e, "address", &s->e_address) || offset(e, "kind", &s->e_kind) || offset(e, "version", &s->e_version) ||
        offset(e, "length", &s->e_length) || offset(e, "token", &s->e_token) || offset(e, "children", &s->e_children) ||
        offset(e, "reader", &s->e_reader) || offset(r, "peek", &s->r_peek))
        return NULL;
    Py_RETURN_NONE;
}

#include "recorder_fast_module.h"
