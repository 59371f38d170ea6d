/* Reads samples of objects. These functions run no user code. */
#include "objects.h"

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
    Py_ssize_t at = 0, n = 0;
    while (n < MAX_SAMPLE && PyDict_Next(v, &at, &key, &item)) {
        p->items[n] = key;
        values[n++] = item;
    }
    memcpy(p->items + n, values, n * sizeof *values);
    p->used = 2 * n;
    p->length = PyDict_GET_SIZE(v);
}

/* Reads the attributes of an instance in its __dict__, which CPython may not have made yet, and in its slots. */
static void peek_instance(PyObject *v, Reader *reader, Sample *p)
{
    PyTypeObject *kind = Py_TYPE(v);
    int managed = kind->tp_flags & Py_TPFLAGS_MANAGED_DICT;
    PyDictValues *inlined = reader->has_dict && managed ? *_PyObject_ValuesPointer(v) : NULL;
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
    } else if (reader->has_dict) {
        PyObject **dict = managed ? _PyObject_ManagedDictPointer(v) : _PyObject_GetDictPtr(v);
        if (dict != NULL && *dict != NULL)
            peek_dict(*dict, p);
    }
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

/* Reads the axes and blocks of a DataFrame. It computes the length only if they have changed. */
static int peek_dataframe(PyObject *v, Entry *e, Sample *p)
{
    PyObject *name = PyUnicode_InternFromString("_mgr"), *manager = name ? PyObject_GenericGetAttr(v, name) : NULL;
    PyObject *axes = manager ? PyObject_GetAttrString(manager, "axes") : NULL;
    PyObject *blocks = axes ? PyObject_GetAttrString(manager, "blocks") : NULL;
    int failed = -1;
    if (blocks != NULL && PyList_Check(axes) && PyTuple_Check(blocks) && PyList_GET_SIZE(axes) > 0) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(axes); i++)
            add_item(p, PyList_GET_ITEM(axes, i));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blocks); i++)
            add_item(p, PyTuple_GET_ITEM(blocks, i));
        p->length = e->length;
        if (p->used != e->token_size || memcmp(p->items, e->token, p->used * sizeof *p->items) != 0)
            p->length = PyObject_Size(PyList_GET_ITEM(axes, PyList_GET_SIZE(axes) - 1));
        failed = p->length < 0 ? -1 : 0; /* v holds the manager, which holds what is borrowed */
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the DataFrame has no block manager");
    Py_XDECREF(name);
    Py_XDECREF(manager);
    Py_XDECREF(axes);
    Py_XDECREF(blocks);
    return failed;
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
    p->used = p->length = 0;
    p->list = NULL;
    switch (e->reader->how) {
    case PEEK_LIST:
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
    case PEEK_DATAFRAME:
        return peek_dataframe(v, e, p);
    default:
        return peek_in_python(r, v, e->reader, p);
    }
}

int is_same_array(PyObject *v, Entry *e)
{
    if (e->dtype == NULL || e->sample == NULL || PyList_GET_SIZE(e->sample) != 3)
        return 0;
    PyObject *dtype = PyObject_GetAttrString(v, "dtype"), *bytes = PyList_GET_ITEM(e->sample, 2);
    Py_XDECREF(dtype); /* the array holds it */
    Py_buffer b;
    if (dtype != e->dtype || !PyBytes_Check(bytes) || PyObject_GetBuffer(v, &b, PyBUF_ND | PyBUF_C_CONTIGUOUS) < 0) {
        PyErr_Clear();
        return 0;
    }
    char shape[256];
    int at = 0, same = b.itemsize > 0;
    for (int i = 0; i < b.ndim && at < 200; i++)
        at += snprintf(shape + at, sizeof shape - at, i ? "x%zd" : "%zd", b.shape[i]);
    shape[at] = 0;
    same = same && PyUnicode_CompareWithASCIIString(PyList_GET_ITEM(e->sample, 1), shape) == 0;
    Py_ssize_t size = same ? b.len / b.itemsize : 0, step = size / MAX_SAMPLE ? size / MAX_SAMPLE : 1, n = 0;
    for (Py_ssize_t i = 0; same && i < size && n < MAX_SAMPLE; i += step, n++)
        same = (n + 1) * b.itemsize <= PyBytes_GET_SIZE(bytes) &&
               memcmp((char *)b.buf + i * b.itemsize, PyBytes_AS_STRING(bytes) + n * b.itemsize, b.itemsize) == 0;
    PyBuffer_Release(&b);
    return same;
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
    Py_CLEAR(p->list);
}

int select_shown(Recorder *r, PyObject *v, Entry *e, Sample *p, PyObject **shown, PyObject **list)
{
    int n = 0;
    if (e->reader->how > PEEK_INSTANCE) {
        PyObject *sample = p->list ? p->list : Py_None;
        PyObject *got = call_python(r, r->objects, "_select_shown", "(OOnO)", v, e->reader->reader, p->length, sample);
        int exactness;
        if (got == NULL || !PyArg_ParseTuple(got, "O!i", &PyList_Type, list, &exactness)) {
            Py_XDECREF(got);
            *list = NULL;
            return -1;
        }
        Py_INCREF(*list);
        Py_DECREF(got);
        return exactness;
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
