/* The table of objects that recorded variables hold, as in recorder_objects.py. */
#include "objects.h"

int queue_unheld(Recorder *r, Entry *e)
{
    if (r->unheld_count == r->unheld_capacity && grow_array(&r->unheld, &r->unheld_capacity, sizeof *r->unheld) < 0)
        return -1;
    r->unheld[r->unheld_count++] = (Entry *)Py_NewRef(e);
    return 0;
}

int drop_holder(Recorder *r, Entry *e) { return --e->holders <= 0 ? queue_unheld(r, e) : 0; }

void clear_children(Entry *e)
{
    for (Py_ssize_t i = 0; i < e->child_count; i++)
        Py_DECREF(e->children[i]);
    PyMem_Free(e->children);
    e->children = NULL;
    e->child_count = e->changing_children = 0;
}

void clear_token(Entry *e)
{
    for (Py_ssize_t i = 0; i < e->token_size; i++)
        if (e->token[i] & 1)
            Py_DECREF((PyObject *)(e->token[i] & ~(uintptr_t)1));
    PyMem_Free(e->token);
    e->token = NULL;
    e->token_size = 0;
    Py_CLEAR(e->sample);
}

static int can_change(Reader *reader) { return reader->how != PEEK_NOTHING && reader->how < PEEK_LEAF; }

/* Records that an object is free, and forgets its entry. */
static int forget(Recorder *r, Entry *e)
{
    if (map_get(&r->entries, e->address) == e) {
        map_remove(&r->entries, e->address);
        Py_DECREF(e);
    }
    if (reserve(&r->pending, 16) < 0)
        return -1;
    put_byte(&r->pending, FREE);
    put_number(&r->pending, e->number);
    if (r->free_count == r->free_capacity && grow_array(&r->free_numbers, &r->free_capacity, sizeof *r->free_numbers) < 0)
        return -1;
    r->free_numbers[r->free_count++] = e->number;
    e->version = -1;
    for (Py_ssize_t i = 0; i < e->child_count; i++) {
        e->children[i]->holders--;
        if (queue_unheld(r, e->children[i]) < 0)
            return -1;
    }
    clear_children(e);
    return 0;
}

int forget_unheld(Recorder *r)
{
    while (r->unheld_count > 0) {
        Entry *e = r->unheld[--r->unheld_count];
        if (e->holders <= 0 && e->version >= 0 && forget(r, e) < 0)
            return -1;
        Py_DECREF(e);
    }
    return 0;
}

/* Tells whether a sample is the one that was recorded last. */
static int is_unchanged(Entry *e, Sample *p)
{
    if (p->length != e->length)
        return 0;
    if (e->sample != NULL)
        return p->list != NULL && PyObject_RichCompareBool(e->sample, p->list, Py_EQ) == 1;
    if (p->used != e->token_size || p->digest != e->digest)
        return 0;
    for (Py_ssize_t i = 0; i < p->used; i++)
        if ((e->token[i] & ~(uintptr_t)1) != (uintptr_t)p->items[i])
            return 0;
    return 1;
}

/* Tells whether a dict has the pairs that were recorded last. */
static int has_same_pairs(PyObject *dict, Entry *e)
{
    uintptr_t differences = 0;
    Py_ssize_t at = 0, n = 0, half = e->token_size / 2;
    PyObject *key, *value;
    if (PyDict_GET_SIZE(dict) != e->length)
        return 0;
    PyDictUnicodeEntry *entries = plain_entries(dict);
    if (entries != NULL) {
        for (; n < half; n++)
            differences |= (e->token[n] ^ (uintptr_t)entries[n].me_key) |
                           (e->token[half + n] ^ (uintptr_t)entries[n].me_value);
        return differences <= 1;
    }
    while (n < half && PyDict_Next(dict, &at, &key, &value)) {
        differences |= (e->token[n] ^ (uintptr_t)key) | (e->token[half + n] ^ (uintptr_t)value);
        n++;
    }
    return differences <= 1 && n == half;
}

#if HAS_MONITORING
/* Tells whether an instance without slots has the attributes that were recorded last. */
static int has_same_attributes(PyObject *v, Entry *e)
{
    PyObject *dict = PyObject_GenericGetDict(v, NULL);
    int same = dict != NULL && has_same_pairs(dict, e);
    if (dict == NULL)
        PyErr_Clear();
    Py_XDECREF(dict); /* v holds it as well */
    return same;
}
#else
static int has_same_attributes(PyObject *v, Entry *e)
{
    PyTypeObject *kind = Py_TYPE(v);
    int managed = kind->tp_flags & Py_TPFLAGS_MANAGED_DICT;
    PyDictValues *inlined = managed ? *_PyObject_ValuesPointer(v) : NULL;
    if (inlined == NULL) {
        PyObject **dict = managed ? _PyObject_ManagedDictPointer(v) : _PyObject_GetDictPtr(v);
        return dict != NULL && *dict != NULL && has_same_pairs(*dict, e);
    }
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(((PyHeapTypeObject *)kind)->ht_cached_keys);
    const unsigned char *order = (const unsigned char *)inlined; /* as in peek_attributes */
    Py_ssize_t half = e->token_size / 2;
    uintptr_t differences = 0;
    if (order[-2] != e->length)
        return 0;
    for (Py_ssize_t i = 0; i < half; i++) {
        int at = order[-3 - i];
        differences |= (e->token[i] ^ (uintptr_t)entries[at].me_key) |
                       (e->token[half + i] ^ (uintptr_t)inlined->values[at]);
    }
    return differences <= 1;
}
#endif

/* Tells whether a list, tuple, dict or instance has the items that were recorded last. It makes no sample, so it takes
 * half the time of one. Returns 0 for all other objects. */
static int has_same_items(PyObject *v, Entry *e)
{
    uintptr_t differences = 0;
    PyObject **items;
    switch (e->reader->how) {
    case PEEK_LIST:
    case PEEK_TUPLE:
        if (Py_SIZE(v) != e->length)
            return 0;
        items = e->reader->how == PEEK_LIST ? ((PyListObject *)v)->ob_item : ((PyTupleObject *)v)->ob_item;
        for (Py_ssize_t i = 0; i < e->token_size; i++)
            differences |= e->token[i] ^ (uintptr_t)items[i];
        return differences <= 1;
    case PEEK_DICT:
        return has_same_pairs(v, e);
    case PEEK_INSTANCE:
        return e->reader->has_dict && PyTuple_GET_SIZE(e->reader->members) == 0 && has_same_attributes(v, e);
    default:
        return 0;
    }
}

/* Keeps a sample for the next comparison, in the place of the one before if that has the same size. */
static int keep_sample(Entry *e, Sample *p)
{
    int by_value = p->list != NULL && e->reader->how == PEEK_PYTHON;
    Py_ssize_t size = by_value ? 0 : p->used;
    e->length = p->length;
    e->digest = p->digest;
    if (size != e->token_size || e->sample != NULL)
        clear_token(e);
    if (by_value)
        e->sample = Py_NewRef(p->list);
    if (size > 0 && e->token == NULL) {
        e->token = PyMem_Calloc(size, sizeof *e->token);
        if (e->token == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        e->token_size = size;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        uintptr_t before = e->token[i];
        if ((before & ~(uintptr_t)1) == (uintptr_t)p->items[i] && before & 1)
            continue; /* a scalar that the entry owns */
        int scalar = is_scalar(Py_TYPE(p->items[i]));
        if (scalar)
            Py_INCREF(p->items[i]);
        e->token[i] = (uintptr_t)p->items[i] | scalar;
        if (before & 1)
            Py_DECREF((PyObject *)(before & ~(uintptr_t)1));
    }
    return 0;
}

/* Appends values to body. Objects among them become children, whose own records come before that of e. */
static int append_items(Recorder *r, Entry *e, Buffer *body, PyObject **shown, Py_ssize_t count, Entry **children,
                        Py_ssize_t *child_count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        int written = append_scalar(r, body, NULL, shown[i]);
        if (written < 0)
            return -1;
        if (written > 0)
            continue;
        Entry *child = entry_of(r, shown[i], e->depth + 1);
        if (child == NULL || reserve(body, 16) < 0)
            return -1;
        put_byte(body, '@');
        put_number(body, child->number);
        child->holders++;
        children[(*child_count)++] = (Entry *)Py_NewRef(child);
    }
    return 0;
}

/* Sets the children of e, takes over their references, and drops the previous children. */
static int replace_children(Recorder *r, Entry *e, Entry **children, Py_ssize_t count)
{
    Entry **before = e->children;
    Py_ssize_t before_count = e->child_count;
    int failed = 0;
    if (count == 0 && before_count == 0)
        return 0;
    if (count == before_count && memcmp(before, children, count * sizeof *children) == 0) {
        for (Py_ssize_t i = 0; i < count; i++) {
            children[i]->holders--;
            Py_DECREF(children[i]);
        }
        return 0;
    }
    e->children = NULL;
    if (count > 0 && (e->children = PyMem_Malloc(count * sizeof *children)) != NULL)
        memcpy(e->children, children, count * sizeof *children);
    e->child_count = e->children ? count : 0;
    e->changing_children = 0;
    for (Py_ssize_t i = 0; i < e->child_count; i++)
        e->changing_children += can_change(children[i]->reader);
    for (Py_ssize_t i = 0; i < before_count; i++) {
        failed = drop_holder(r, before[i]) < 0 || failed;
        Py_DECREF(before[i]);
    }
    PyMem_Free(before);
    return failed ? -1 : 0;
}

/* Appends the record of a new or changed object with this body, and keeps a copy of the body. */
static int record_body(Recorder *r, Entry *e, const unsigned char *body, Py_ssize_t size, int deeper)
{
    if (reserve(&r->pending, 48 + size + PyBytes_GET_SIZE(e->reader->name)) < 0)
        return -1;
    if (size != e->body_size) {
        unsigned char *kept = PyMem_Realloc(e->body, size);
        if (kept == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        e->body = kept;
        e->body_size = size;
    }
    memcpy(e->body, body, size);
    e->version += !deeper;
    int is_new = !deeper && e->version == 1;
    put_byte(&r->pending, is_new ? OBJECT : MUTATE);
    put_number(&r->pending, e->number);
    if (is_new)
        put_raw(&r->pending, PyBytes_AS_STRING(e->reader->name), PyBytes_GET_SIZE(e->reader->name));
    put_number(&r->pending, is_new || deeper ? e->version : 0);
    put_raw(&r->pending, body, size);
    return 0;
}

/* Reads a sample for record_object. Returns its exactness, or -1. */
static int read_sample(Recorder *r, PyObject *v, Entry *e, Sample *p)
{
    clear_sample(p);
    if (e->reader->how >= PEEK_LEAF)
        return EXACT;
    if (e->reader->how == PEEK_NOTHING || e->depth >= MAX_DEPTH)
        return UNREAD;
    if (peek(r, v, e, p) == 0)
        return EXACT;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    release_sample(p, 0);
    clear_sample(p);
    return UNREAD;
}

/* Records an object as new or changed. p is a sample that was read just now, or NULL; record_object releases it.
 * deeper: the object is the same, but more of it is read than before. */
static int record_object(Recorder *r, PyObject *v, Entry *e, int deeper, Sample *p)
{
    Sample read;
    PyObject *own[2 * MAX_SHOWN + 1], **shown = own, *list = NULL;
    Entry *few[2 * MAX_SHOWN], **children = few;
    Py_ssize_t count = 0, child_count = 0, start = r->bodies.used;
    int form = OPAQUE, exactness = p != NULL ? EXACT : read_sample(r, v, e, p = &read);
    if (exactness < 0)
        return -1;
    own[0] = NULL;
    hold_sample(p);
    Buffer *body = &r->bodies; /* an object that this one holds appends its body behind it, and removes it again */
    int failed = keep_sample(e, p);
    if (!failed && exactness == EXACT) {
        exactness = select_shown(r, v, e, p, own, &list);
        failed = exactness < 0;
        form = e->reader->form;
    }
    if (list != NULL) {
        shown = ((PyListObject *)list)->ob_item;
        count = PyList_GET_SIZE(list);
    } else
        while (shown[count] != NULL)
            count++;
    if (count > 2 * MAX_SHOWN && !failed)
        failed = (children = PyMem_Malloc(count * sizeof *children)) == NULL;
    if (!failed && reserve(body, 5 * MAX_NUMBER_BYTES + p->text_size) == 0) {
        put_number(body, exactness);
        put_number(body, p->length + 1);
        put_number(body, form);
        put_number(body, p->text_size ? 1 : count);
        put_raw(body, p->text, p->text_size);
        failed = append_items(r, e, body, shown, count, children, &child_count) < 0;
    } else
        failed = 1;
    failed = replace_children(r, e, children, child_count) < 0 || failed;
    if (children != few)
        PyMem_Free(children);
    Py_XDECREF(list);
    release_sample(p, 1);
    Py_ssize_t size = body->used - start;
    /* Equal scalars may have taken the place of others. */
    int equal = size == e->body_size && memcmp(body->data + start, e->body, size) == 0;
    if (!failed && !(equal && (deeper || exactness == EXACT)))
        failed = record_body(r, e, body->data + start, size, deeper) < 0;
    body->used = start;
    if (failed && !PyErr_Occurred())
        PyErr_NoMemory();
    return failed ? -1 : 0;
}

/* Records the changes of the objects that an unchanged object holds, if its children are all of them that can be known.
 * Returns 0 if they are not. */
static int record_changes_of_children(Recorder *r, Entry *e, int depth)
{
    PyObject *held[2 * MAX_SHOWN];
    int count = 0, failed = 0;
    if (e->token_size > (e->reader->form == ITEMS ? MAX_SHOWN : 2 * MAX_SHOWN) || e->child_count > 2 * MAX_SHOWN)
        return 0;
    for (Py_ssize_t i = 0; i < e->child_count; i++) {
        Entry *child = e->children[i];
        if (can_change(child->reader)) /* its address is valid as long as e holds the object */
            held[count++] = Py_NewRef(child->address);
    }
    for (int i = 0; i < count; i++) {
        Entry *child = failed ? NULL : map_get(&r->entries, held[i]);
        if (child != NULL && child->reader->kind == Py_TYPE(held[i]) && can_change(child->reader))
            failed = record_changes(r, held[i], child, depth + 1) < 0;
        Py_DECREF(held[i]);
    }
    return failed ? -1 : 1;
}

int record_changes(Recorder *r, PyObject *v, Entry *e, int depth)
{
    if (!can_change(e->reader) || e->checked_at == r->event || depth >= MAX_DEPTH)
        return 0;
    if (r->skips_tables && (e->reader->how == PEEK_FRAME || (r->skips_tables == 1 && e->reader->how == PEEK_ARRAY)))
        return 0;
    e->checked_at = r->event;
    if (has_same_items(v, e)) {
        int done = e->changing_children == 0 ? 1 : record_changes_of_children(r, e, depth);
        if (done != 0)
            return done < 0 ? -1 : 0;
    }
    Sample p;
    if (peek(r, v, e, &p) < 0) { /* another thread changes the object now: the next step compares it again */
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return -1;
        PyErr_Clear();
        return 0;
    }
    if (!is_unchanged(e, &p)) {
        r->array_changed = r->array_changed || (e->reader->how == PEEK_ARRAY && may_share(v));
        if (e->depth < MAX_DEPTH)
            return record_object(r, v, e, 0, &p);
        release_sample(&p, 0);
        return record_object(r, v, e, 0, NULL);
    }
    int failed = 0, nested = e->changing_children > 0;
    if (nested) {
        hold_sample(&p);
        for (Py_ssize_t i = 0; i < p.used && !failed; i++) {
            PyTypeObject *kind = Py_TYPE(p.items[i]);
            if (is_scalar(kind))
                continue;
            Entry *child = map_get(&r->entries, p.items[i]);
            if (child != NULL && child->reader->kind == kind && can_change(child->reader))
                failed = record_changes(r, p.items[i], child, depth + 1);
        }
    }
    release_sample(&p, nested);
    return failed ? -1 : 0;
}

static Entry *new_entry(Recorder *r, PyObject *v, int depth)
{
    if (r->last_number - r->free_count >= r->max_objects) {
        Py_XDECREF(PyObject_CallMethod(r->objects, "raise_full", NULL));
        return NULL;
    }
    Reader *reader = reader_of(r, Py_TYPE(v));
    Entry *e = reader ? PyObject_New(Entry, &EntryType) : NULL;
    if (e == NULL)
        return NULL;
    memset((char *)e + sizeof(PyObject), 0, sizeof *e - sizeof(PyObject));
    e->serial = ++r->objects_seen;
    e->number = r->free_count > 0 ? r->free_numbers[--r->free_count] : ++r->last_number;
    e->address = v;
    e->reader = reader;
    e->depth = depth;
    e->checked_at = r->event;
    e->length = -1;
    if (map_set(&r->entries, v, e) < 0)
        Py_CLEAR(e);
    return e;
}

Entry *entry_of(Recorder *r, PyObject *v, int depth)
{
    Entry *e = map_get(&r->entries, v);
    if (e != NULL && e->reader->kind == Py_TYPE(v)) {
        int failed;
        if (depth < e->depth && can_change(e->reader)) {
            e->depth = depth;
            failed = record_object(r, v, e, 1, NULL);
        } else
            failed = record_changes(r, v, e, depth);
        return failed < 0 ? NULL : e;
    }
    Entry *fresh = new_entry(r, v, depth);
    if (fresh == NULL)
        return NULL;
    Py_XDECREF(e); /* the entry of an object of another class that had the same address */
    return record_object(r, v, fresh, 0, NULL) < 0 ? NULL : fresh;
}
