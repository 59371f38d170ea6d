/* Reads samples of objects. These functions run no user code. */
#include "objects.h"

#include <datetime.h>

/* A numpy.int64. */
typedef struct {
    PyObject_HEAD
    long long value;
} NumpyInt;

Reader *reader_of(Recorder *r, PyTypeObject *kind)
{
    Reader *reader = map_get(&r->readers, kind);
    if (reader != NULL)
        return reader;
    PyObject *described = call_python(r, r->objects, "describe_reader", "(O)", kind);
    if (described == NULL)
        return NULL;
    reader = PyMem_Calloc(1, sizeof *reader);
    int how;
    if (reader == NULL ||
        !PyArg_ParseTuple(described, "OOiiOOp", &reader->reader, &reader->name, &reader->form, &how, &reader->peek, &reader->members,
                          &reader->has_dict) ||
        map_set(&r->readers, kind, reader) < 0) {
        PyMem_Free(reader);
        Py_DECREF(described);
        return NULL;
    }
    reader->how = how;
    reader->kind = kind;
    Py_INCREF(kind);
    Py_INCREF(reader->reader);
    Py_INCREF(reader->name);
    Py_INCREF(reader->peek);
    Py_INCREF(reader->members);
    Py_DECREF(described);
    return reader;
}

static inline void add_item(Sample *p, PyObject *item)
{
    if (p->used < 2 * MAX_SAMPLE)
        p->items[p->used++] = item;
}

static void peek_dict(PyObject *v, Sample *p)
{
    PyObject *key, *item, *values[MAX_SAMPLE];
    Py_ssize_t at = 0, n = 0, size = PyDict_GET_SIZE(v) < MAX_SAMPLE ? PyDict_GET_SIZE(v) : MAX_SAMPLE;
    PyDictUnicodeEntry *entries = plain_entries(v);
    p->length = PyDict_GET_SIZE(v);
    if (entries != NULL) {
        for (; n < size; n++) {
            p->items[n] = entries[n].me_key;
            p->items[size + n] = entries[n].me_value;
        }
        p->used = 2 * n;
        return;
    }
    while (n < MAX_SAMPLE && PyDict_Next(v, &at, &key, &item)) {
        p->items[n] = key;
        values[n++] = item;
    }
    memcpy(p->items + n, values, n * sizeof *values);
    p->used = 2 * n;
}

#if HAS_MONITORING
/* Reads the __dict__ of an instance, which CPython makes if it has not done that yet. */
static void peek_attributes(PyObject *v, Sample *p)
{
    PyObject *dict = PyObject_GenericGetDict(v, NULL);
    if (dict != NULL)
        peek_dict(dict, p);
    else
        PyErr_Clear();
    Py_XDECREF(dict); /* v holds it as well */
}
#else
/* Reads the __dict__ of an instance, or the values in its place: CPython makes the dict when somebody asks for it. */
static void peek_attributes(PyObject *v, Sample *p)
{
    PyTypeObject *kind = Py_TYPE(v);
    int managed = kind->tp_flags & Py_TPFLAGS_MANAGED_DICT;
    PyDictValues *inlined = managed ? *_PyObject_ValuesPointer(v) : NULL;
    if (inlined != NULL) {
        PyDictKeysObject *keys = ((PyHeapTypeObject *)kind)->ht_cached_keys;
        PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
        const unsigned char *order = (const unsigned char *)inlined; /* before it: the count, then the insertion order */
        int n = order[-2];
        n = n < MAX_SAMPLE ? n : MAX_SAMPLE;
        for (int i = 0; i < n; i++) {
            int at = order[-3 - i];
            p->items[i] = entries[at].me_key;
            p->items[n + i] = inlined->values[at];
        }
        p->used = 2 * n;
        p->length = order[-2];
        return;
    }
    PyObject **dict = managed ? _PyObject_ManagedDictPointer(v) : _PyObject_GetDictPtr(v);
    if (dict != NULL && *dict != NULL)
        peek_dict(*dict, p);
}
#endif

/* Reads the attributes of an instance: in its __dict__, if it has one, and in its slots. */
static void peek_instance(PyObject *v, Reader *reader, Sample *p)
{
    if (reader->has_dict)
        peek_attributes(v, p);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(reader->members); i++) {
        PyObject *member = PyTuple_GET_ITEM(reader->members, i);
        PyMemberDef *def = ((PyMemberDescrObject *)PyTuple_GET_ITEM(member, 1))->d_member;
        PyObject *item = PyMember_GetOne((const char *)v, def);
        if (item == NULL) {
            PyErr_Clear();
            continue;
        }
        p->length++;
        if (p->used + 2 <= 2 * MAX_SAMPLE && Py_REFCNT(item) > 1) { /* v holds the item as well, so it can be borrowed */
            Py_ssize_t half = p->used / 2;
            memmove(p->items + half + 1, p->items + half, half * sizeof *p->items);
            p->items[half] = PyTuple_GET_ITEM(member, 0);
            p->items[p->used + 1] = item;
            p->used += 2;
        }
        Py_DECREF(item);
    }
}

static int peek_in_python(Recorder *r, PyObject *v, Reader *reader, Sample *p)
{
    r->called_python = 1;
    PyObject *got = drain(r) < 0 ? NULL : PyObject_CallOneArg(reader->peek, v);
    if (got == NULL)
        return -1;
    PyObject *length = PyTuple_GET_ITEM(got, 0);
    p->length = length == Py_None ? -1 : PyLong_AsSsize_t(length);
    p->list = Py_NewRef(PyTuple_GET_ITEM(got, 1));
    Py_DECREF(got);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(p->list); i++)
        add_item(p, PyList_GET_ITEM(p->list, i));
    return 0;
}

int peek(Recorder *r, PyObject *v, Entry *e, Sample *p)
{
    clear_sample(p);
    p->length = 0;
    switch (e->reader->how) {
    case PEEK_LIST:
        if (((PyListObject *)v)->allocated < 0) {
            PyErr_SetString(PyExc_RuntimeError, "its own sort has taken its items away for now");
            return -1;
        }
        /* fall through */
    case PEEK_TUPLE: {
        PyObject **items = e->reader->how == PEEK_LIST ? ((PyListObject *)v)->ob_item : ((PyTupleObject *)v)->ob_item;
        p->length = Py_SIZE(v);
        p->used = p->length < MAX_SAMPLE ? p->length : MAX_SAMPLE;
        memcpy(p->items, items, p->used * sizeof *items);
        return 0;
    }
    case PEEK_DICT:
        peek_dict(v, p);
        return 0;
    case PEEK_SET: {
        PyObject *item;
        Py_hash_t hash;
        Py_ssize_t at = 0;
        while (p->used < MAX_SAMPLE && _PySet_NextEntry(v, &at, &item, &hash))
            p->items[p->used++] = item;
        p->length = PySet_GET_SIZE(v);
        return 0;
    }
    case PEEK_INSTANCE:
        peek_instance(v, e->reader, p);
        return 0;
    case PEEK_FRAME:
    case PEEK_ARRAY:
        return peek_table(v, e, p);
    default:
        return peek_in_python(r, v, e->reader, p);
    }
}

void hold_sample(Sample *p)
{
    for (Py_ssize_t i = 0; i < p->used; i++)
        Py_INCREF(p->items[i]);
}

void release_sample(Sample *p, int held)
{
    for (Py_ssize_t i = 0; held && i < p->used; i++)
        Py_DECREF(p->items[i]);
    for (Py_ssize_t i = 0; p->owns_items && i < p->used; i++)
        Py_DECREF(p->items[i]);
    p->owns_items = 0;
    Py_CLEAR(p->list);
}

static PyObject *nanosecond_name;

int prepare_peek(void)
{
    PyDateTime_IMPORT;
    nanosecond_name = PyUnicode_InternFromString("nanosecond");
    return PyDateTimeAPI && nanosecond_name ? 0 : -1;
}

static char *put_digits(char *at, int value, int count)
{
    for (int i = count - 1; i >= 0; i--, value /= 10)
        at[i] = (char)('0' + value % 10);
    return at + count;
}

/* Writes the repr of a pandas Timestamp, with tag and length, to p->text. A table has many of them, and repr takes ten
 * times as long. Returns 0 without an exception if it has a time zone. */
static int show_timestamp(PyObject *v, Sample *p)
{
    if (!PyDateTime_Check(v) || PyDateTime_DATE_GET_TZINFO(v) != Py_None)
        return 0;
    PyObject *number = PyObject_GetAttr(v, nanosecond_name);
    int nanosecond = number ? (int)PyLong_AsLong(number) : -1, microsecond = PyDateTime_DATE_GET_MICROSECOND(v);
    Py_XDECREF(number);
    if (nanosecond < 0)
        return 0;
    const int parts[] = {PyDateTime_GET_YEAR(v), PyDateTime_GET_MONTH(v), PyDateTime_GET_DAY(v),
                         PyDateTime_DATE_GET_HOUR(v), PyDateTime_DATE_GET_MINUTE(v), PyDateTime_DATE_GET_SECOND(v)};
    static const char before[] = "'-- ::"; /* each part */
    char *at = p->text + 2;
    memcpy(at, "Timestamp(", 10);
    at += 10;
    for (int i = 0; i < 6; i++) {
        *at++ = before[i];
        at = put_digits(at, parts[i], i == 0 ? 4 : 2);
    }
    if (microsecond > 0 || nanosecond > 0) {
        *at++ = '.';
        at = put_digits(at, microsecond, 6);
    }
    if (nanosecond > 0)
        at = put_digits(at, nanosecond, 3);
    *at++ = '\'';
    *at++ = ')';
    p->text_size = at - p->text;
    p->text[0] = 'R';
    p->text[1] = (char)(p->text_size - 2); /* less than 128 */
    return 1;
}

int select_shown(Recorder *r, PyObject *v, Entry *e, Sample *p, PyObject **shown, PyObject **list)
{
    int n = 0;
    if (e->reader->how == PEEK_NUMPY_FLOAT || e->reader->how == PEEK_NUMPY_INT) {
        *list = e->reader->how == PEEK_NUMPY_FLOAT ? Py_BuildValue("[d]", PyFloat_AS_DOUBLE(v))
                                                   : Py_BuildValue("[L]", ((NumpyInt *)v)->value);
        return *list ? EXACT : -1;
    }
    if (e->reader->how == PEEK_TIMESTAMP && show_timestamp(v, p))
        return EXACT;
    if (PyErr_Occurred())
        return -1;
    if (e->reader->how > PEEK_INSTANCE) {
        PyObject *sample = p->list ? p->list : Py_None;
        PyObject *got = call_python(r, r->objects, "_select_shown", "(OOnO)", v, e->reader->reader, p->length, sample);
        PyObject *length;
        int exactness;
        if (got == NULL || !PyArg_ParseTuple(got, "O!iO", &PyList_Type, list, &exactness, &length)) {
            Py_XDECREF(got);
            *list = NULL;
            return -1;
        }
        Py_INCREF(*list);
        p->length = length == Py_None ? -1 : PyLong_AsSsize_t(length);
        Py_DECREF(got);
        return p->length == -1 && PyErr_Occurred() ? -1 : exactness;
    }
    Py_ssize_t half = e->reader->form == ITEMS ? p->used : p->used / 2, limit = MAX_SHOWN;
    for (Py_ssize_t i = 0; i < half && i < limit; i++) {
        if (e->reader->form == ATTRIBUTES && !PyUnicode_CheckExact(p->items[i])) { /* not a name */
            p->length--;
            limit++;
            continue;
        }
        shown[n++] = p->items[i];
        if (e->reader->form != ITEMS)
            shown[n++] = p->items[half + i];
    }
    shown[n] = NULL;
    return p->length <= MAX_SHOWN ? EXACT : p->length <= MAX_SAMPLE ? TRUNCATED : SAMPLED;
}
