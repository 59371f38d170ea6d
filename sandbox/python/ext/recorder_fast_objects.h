/* Objects as records, as recorder_values.py has them. Nothing here runs code of the
 * user's. What is peeked at is borrowed; it is held while Python of ours may run. */

typedef struct {
    PyObject *items[2 * SAMPLE], *list; /* list owns the items, where Python has peeked */
    Py_ssize_t used, length;
} Sample;

static int look(State *s, PyObject *v, Entry *e, int again);

/* The reader of a class; Python makes it, once. */
static Shape *shape_of(State *s, PyTypeObject *kind)
{
    Shape *shape = find(&s->shapes, kind);
    if (shape != NULL)
        return shape;
    if (drain(s) < 0)
        return NULL;
    s->called = 1;
    PyObject *got = PyObject_CallMethod(s->objects, "described", "O", kind);
    if (got == NULL)
        return NULL;
    shape = PyMem_Calloc(1, sizeof *shape);
    int how;
    if (shape == NULL || !PyArg_ParseTuple(got, "OOiiOOp", &shape->reader, &shape->name, &shape->form, &how, &shape->peek, &shape->members, &shape->has_dict) ||
        put(&s->shapes, kind, shape) < 0) {
        PyMem_Free(shape);
        Py_DECREF(got);
        return NULL;
    }
    shape->how = how;
    shape->kind = kind;
    Py_INCREF(kind);
    Py_INCREF(shape->reader);
    Py_INCREF(shape->name);
    Py_INCREF(shape->peek);
    Py_INCREF(shape->members);
    Py_DECREF(got);
    return shape;
}

static inline void add(Sample *p, PyObject *item)
{
    if (p->used < 2 * SAMPLE)
        p->items[p->used++] = item;
}

static void peek_dict(PyObject *v, Sample *p)
{
    PyObject *key, *item, *values[SAMPLE];
    Py_ssize_t at = 0, n = 0;
    while (n < SAMPLE && PyDict_Next(v, &at, &key, &item)) {
        p->items[n] = key;
        values[n++] = item;
    }
    memcpy(p->items + n, values, n * sizeof *values);
    p->used = 2 * n;
    p->length = PyDict_GET_SIZE(v);
}

/* What an instance has in __dict__, which need not be a dict yet, and in its slots. */
static int peek_instance(PyObject *v, Shape *shape, Sample *p)
{
    PyTypeObject *kind = Py_TYPE(v);
    PyDictValues *inlined = shape->has_dict && kind->tp_flags & Py_TPFLAGS_MANAGED_DICT ? *_PyObject_ValuesPointer(v) : NULL;
    if (inlined != NULL) {
        PyDictKeysObject *keys = ((PyHeapTypeObject *)kind)->ht_cached_keys;
        PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
        const unsigned char *order = (const unsigned char *)inlined;
        int n = order[-2];
        n = n < SAMPLE ? n : SAMPLE;
        for (int i = 0; i < n; i++) {
            int at = order[-3 - i];
            p->items[i] = entries[at].me_key;
            p->items[n + i] = inlined->values[at];
        }
        p->used = 2 * n;
        p->length = order[-2];
    } else if (shape->has_dict) {
        PyObject **dict = kind->tp_flags & Py_TPFLAGS_MANAGED_DICT ? _PyObject_ManagedDictPointer(v) : _PyObject_GetDictPtr(v);
        if (dict != NULL && *dict != NULL)
            peek_dict(*dict, p);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape->members); i++) {
        PyObject *member = PyTuple_GET_ITEM(shape->members, i);
        PyMemberDef *def = ((PyMemberDescrObject *)PyTuple_GET_ITEM(member, 1))->d_member;
        PyObject *item = PyMember_GetOne((const char *)v, def);
        if (item == NULL) {
            PyErr_Clear();
            continue;
        }
        p->length++;
        if (p->used + 2 <= 2 * SAMPLE && Py_REFCNT(item) > 1) { /* v holds it, too */
            Py_ssize_t half = p->used / 2;
            memmove(p->items + half + 1, p->items + half, half * sizeof *p->items);
            p->items[half] = PyTuple_GET_ITEM(member, 0);
            p->items[p->used + 1] = item;
            p->used += 2;
        }
        Py_DECREF(item);
    }
    return 0;
}

/* The identity of a DataFrame's axes and blocks; its length only where it is new. */
static int peek_frame(PyObject *v, Entry *e, Sample *p)
{
    PyObject *name = PyUnicode_InternFromString("_mgr"), *manager = name ? PyObject_GenericGetAttr(v, name) : NULL;
    PyObject *axes = manager ? PyObject_GetAttrString(manager, "axes") : NULL, *blocks = axes ? PyObject_GetAttrString(manager, "blocks") : NULL;
    int failed = -1;
    if (blocks != NULL && PyList_Check(axes) && PyTuple_Check(blocks) && PyList_GET_SIZE(axes) > 0) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(axes); i++)
            add(p, PyList_GET_ITEM(axes, i));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blocks); i++)
            add(p, PyTuple_GET_ITEM(blocks, i));
        p->length = e->length;
        if (p->used != e->tokens || memcmp(p->items, e->token, p->used * sizeof *p->items) != 0)
            p->length = PyObject_Size(PyList_GET_ITEM(axes, PyList_GET_SIZE(axes) - 1));
        failed = p->length < 0 ? -1 : 0; /* the manager, which v holds, holds what is borrowed */
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a DataFrame of another kind");
    Py_XDECREF(name);
    Py_XDECREF(manager);
    Py_XDECREF(axes);
    Py_XDECREF(blocks);
    return failed;
}

static int peek_in_python(State *s, PyObject *v, Shape *shape, Sample *p)
{
    s->called = 1;
    PyObject *got = drain(s) < 0 ? NULL : PyObject_CallOneArg(shape->peek, v);
    if (got == NULL)
        return -1;
    PyObject *length = PyTuple_GET_ITEM(got, 0);
    p->length = length == Py_None ? -1 : PyLong_AsSsize_t(length);
    p->list = PyTuple_GET_ITEM(got, 1);
    Py_INCREF(p->list);
    Py_DECREF(got);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(p->list); i++)
        add(p, PyList_GET_ITEM(p->list, i));
    return 0;
}

static int peek(State *s, PyObject *v, Entry *e, Sample *p)
{
    p->used = p->length = 0;
    p->list = NULL;
    switch (e->shape->how) {
    case LIST:
    case TUPLE: {
        PyObject **items = e->shape->how == LIST ? ((PyListObject *)v)->ob_item : ((PyTupleObject *)v)->ob_item;
        p->length = Py_SIZE(v);
        p->used = p->length < SAMPLE ? p->length : SAMPLE;
        memcpy(p->items, items, p->used * sizeof *items);
        return 0;
    }
    case DICT:
        peek_dict(v, p);
        return 0;
    case SETS: {
        PyObject *item;
        Py_hash_t hash;
        Py_ssize_t at = 0;
        while (p->used < SAMPLE && _PySet_NextEntry(v, &at, &item, &hash))
            p->items[p->used++] = item;
        p->length = PySet_GET_SIZE(v);
        return 0;
    }
    case INSTANCE:
        return peek_instance(v, e->shape, p);
    case DATAFRAME:
        return peek_frame(v, e, p);
    default:
        return peek_in_python(s, v, e->shape, p);
    }
}

/* Whether an array that Python has peeked at is as it was: its shape, type and sample. */
static int same_array(PyObject *v, Entry *e)
{
    if (e->dtype == NULL || e->made == NULL || PyList_GET_SIZE(e->made) != 3)
        return 0;
    PyObject *dtype = PyObject_GetAttrString(v, "dtype"), *bytes = PyList_GET_ITEM(e->made, 2);
    Py_XDECREF(dtype); /* which the array holds */
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
    same = same && PyUnicode_CompareWithASCIIString(PyList_GET_ITEM(e->made, 1), shape) == 0;
    Py_ssize_t size = same ? b.len / b.itemsize : 0, step = size / SAMPLE ? size / SAMPLE : 1, n = 0;
    for (Py_ssize_t i = 0; same && i < size && n < SAMPLE; i += step, n++)
        same = (n + 1) * b.itemsize <= PyBytes_GET_SIZE(bytes) &&
               memcmp((char *)b.buf + i * b.itemsize, PyBytes_AS_STRING(bytes) + n * b.itemsize, b.itemsize) == 0;
    PyBuffer_Release(&b);
    return same;
}

static void hold(Sample *p)
{
    for (Py_ssize_t i = 0; i < p->used; i++)
        Py_INCREF(p->items[i]);
}

static void let_go(Sample *p, int held)
{
    for (Py_ssize_t i = 0; held && i < p->used; i++)
        Py_DECREF(p->items[i]);
    Py_CLEAR(p->list);
}

static int unheld(State *s, Entry *e)
{
    if (s->unheld_used == s->unheld_size) {
        Py_ssize_t size = 2 * s->unheld_size + 64;
        Entry **at = PyMem_Realloc(s->unheld, size * sizeof *at);
        if (at == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        s->unheld = at;
        s->unheld_size = size;
    }
    Py_INCREF(e);
    s->unheld[s->unheld_used++] = e;
    return 0;
}

/* One holder less. */
static int drop(State *s, Entry *e) { return --e->held <= 0 ? unheld(s, e) : 0; }

static void forget_children(Entry *e)
{
    for (Py_ssize_t i = 0; i < e->childs; i++)
        Py_DECREF(e->children[i]);
    PyMem_Free(e->children);
    e->children = NULL;
    e->childs = 0;
}

static void forget_token(Entry *e)
{
    for (Py_ssize_t i = 0; i < e->tokens; i++)
        if (e->token[i] & 1)
            Py_DECREF((PyObject *)(e->token[i] & ~(uintptr_t)1));
    PyMem_Free(e->token);
    e->token = NULL;
    e->tokens = 0;
    Py_CLEAR(e->made);
    Py_CLEAR(e->dtype);
}

static int reusable(State *s, long long number)
{
    if (s->free_used == s->free_size) {
        Py_ssize_t size = 2 * s->free_size + 64;
        long long *at = PyMem_Realloc(s->free, size * sizeof *at);
        if (at == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        s->free = at;
        s->free_size = size;
    }
    s->free[s->free_used++] = number;
    return 0;
}

/* Forgets the objects that nothing holds. */
static int settle(State *s)
{
    while (s->unheld_used > 0) {
        Entry *e = s->unheld[--s->unheld_used];
        if (e->held <= 0 && e->version >= 0) {
            if (find(&s->table, e->address) == e) {
                take_out(&s->table, e->address);
                Py_DECREF(e);
            }
            if (more(&s->pending, 16) < 0)
                return -1;
            byte(&s->pending, FREE);
            number(&s->pending, e->number);
            if (reusable(s, e->number) < 0)
                return -1;
            e->version = -1;
            for (Py_ssize_t i = 0; i < e->childs; i++) {
                e->children[i]->held--;
                if (unheld(s, e->children[i]) < 0)
                    return -1;
            }
            forget_children(e);
        }
        Py_DECREF(e);
    }
    return 0;
}

/* Whether a sample is what was recorded last. */
static int same(Entry *e, Sample *p)
{
    if (p->length != e->length)
        return 0;
    if (e->made != NULL)
        return p->list != NULL && PyObject_RichCompareBool(e->made, p->list, Py_EQ) == 1;
    if (p->used != e->tokens)
        return 0;
    for (Py_ssize_t i = 0; i < p->used; i++)
        if ((e->token[i] & ~(uintptr_t)1) != (uintptr_t)p->items[i])
            return 0;
    return 1;
}

/* Records what has changed in an object, and in what it holds. */
static int check(State *s, PyObject *v, Entry *e, int depth)
{
    if (e->shape->how == NOTHING || e->seen == s->tick || depth >= DEPTH)
        return 0;
    e->seen = s->tick;
    if (e->shape->how == ARRAY && same_array(v, e))
        return 0;
    Sample p;
    if (peek(s, v, e, &p) < 0) { /* another thread changes it just now: at the next step */
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return -1;
        PyErr_Clear();
        return 0;
    }
    int changed = !same(e, &p), failed = 0, nested = !changed && e->childs > 0;
    if (nested) {
        hold(&p);
        for (Py_ssize_t i = 0; i < p.used && !failed; i++) {
            PyTypeObject *kind = Py_TYPE(p.items[i]);
            if (is_scalar(kind))
                continue;
            Entry *child = find(&s->table, p.items[i]);
            if (child != NULL && child->shape->kind == kind && child->shape->how != NOTHING)
                failed = check(s, p.items[i], child, depth + 1);
        }
    }
    let_go(&p, nested);
    return failed ? -1 : changed ? look(s, v, e, 0) : 0;
}

/* What is recorded of a sample: shown, and how exact that is. */
static int shown_of(State *s, PyObject *v, Entry *e, Sample *p, PyObject **shown, PyObject **list)
{
    int n = 0;
    if (e->shape->how > INSTANCE) {
        PyObject *sample = p->list ? p->list : Py_None, *length = PyLong_FromSsize_t(p->length);
        s->called = 1;
        PyObject *got = length == NULL || drain(s) < 0 ? NULL : PyObject_CallMethod(s->objects, "_shown", "OOOO", v, e->shape->reader, length, sample);
        Py_XDECREF(length);
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
    Py_ssize_t half = e->shape->form == ITEMS ? p->used : p->used / 2;
    for (Py_ssize_t i = 0; i < half && i < SHOWN; i++) {
        shown[n++] = p->items[i];
        if (e->shape->form != ITEMS)
            shown[n++] = p->items[half + i];
    }
    shown[n] = NULL;
    return p->length <= SHOWN ? EXACT : p->length <= SAMPLE ? TRUNCATED : SAMPLED;
}
