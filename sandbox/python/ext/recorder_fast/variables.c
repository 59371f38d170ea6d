#include "variables.h"

PyObject *prefix_of(Recorder *r, int record, PyObject *name)
{
    PyObject *prefixes = record == SET ? r->set_prefixes : r->global_prefixes;
    PyObject *prefix = PyDict_GetItemWithError(prefixes, name);
    if (prefix == NULL && !PyErr_Occurred()) {
        prefix = call_python(r, (PyObject *)r, "_prefix", "(iO)", record, name);
        Py_XDECREF(prefix); /* prefixes holds it */
    }
    return prefix;
}

int is_hidden(int record, PyObject *name)
{
    Py_ssize_t size = PyUnicode_GET_LENGTH(name);
    Py_UCS4 first = size > 0 ? PyUnicode_READ_CHAR(name, 0) : 0;
    if (first == '.')
        return 1;
    if (first != '_' || size < 2 || PyUnicode_READ_CHAR(name, 1) != '_')
        return 0;
    return record == SET || PyUnicode_CompareWithASCIIString(name, "__result__") != 0;
}

/* Tells whether old is the entry of value. */
static inline int is_entry_of(PyObject *old, PyObject *value)
{
    Entry *e = (Entry *)old;
    return IS_ENTRY(old) && e->address == value && e->reader->kind == Py_TYPE(value) && e->version > 0;
}

/* Compares two integers or two texts. Other values count as different and are recorded again. */
static int is_equal(PyTypeObject *kind, PyObject *a, PyObject *b)
{
    long long small, other;
    if (kind == &PyLong_Type)
        return small_int(a, &small) ? small_int(b, &other) && small == other : PyObject_RichCompareBool(a, b, Py_EQ);
    return kind == &PyUnicode_Type && PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_Compare(a, b) == 0;
}

int record_value(Recorder *r, int record, PyObject *prefix, PyObject *old, PyObject *value, PyObject **recorded)
{
    PyTypeObject *kind = Py_TYPE(value);
    if (old != NULL && is_entry_of(old, value))
        return record_changes(r, value, (Entry *)old, 0);
    *recorded = value;
    if (old != NULL && Py_TYPE(old) == kind && is_equal(kind, old, value)) {
        Py_INCREF(value);
        return 1;
    }
    int written = append_scalar(r, &r->pending, prefix, value);
    if (written == 0) {
        Entry *e = entry_of(r, value, 0);
        if (e == NULL || reserve(&r->pending, 24 + PyBytes_GET_SIZE(prefix)) < 0)
            return -1;
        put_raw(&r->pending, PyBytes_AS_STRING(prefix), PyBytes_GET_SIZE(prefix));
        put_byte(&r->pending, '@');
        put_number(&r->pending, e->number);
        e->holders++;
        *recorded = (PyObject *)e;
    } else if (written < 0)
        return -1;
    Py_INCREF(*recorded);
    return old != NULL && IS_ENTRY(old) && drop_holder(r, (Entry *)old) < 0 ? -1 : 1;
}

/* Records the value of a variable of a dict; old is what the dict has, borrowed, or NULL. */
static int record_new_value(Recorder *r, int record, PyObject *recorded, PyObject *name, PyObject *old, PyObject *value,
                            PyObject *helpers)
{
    PyObject *fresh, *prefix;
    if (old == value)
        return 0;
    if (old != NULL && is_entry_of(old, value)) {
        Py_INCREF(value); /* while the recorder's Python code may run */
        int failed = record_changes(r, value, (Entry *)old, 0);
        Py_DECREF(value);
        return failed;
    }
    if (is_hidden(record, name) || (helpers != NULL && PyDict_GetItemWithError(helpers, name) == value))
        return 0;
    if ((prefix = prefix_of(r, record, name)) == NULL)
        return -1;
    Py_INCREF(value);
    Py_XINCREF(old);
    int got = record_value(r, record, prefix, old, value, &fresh);
    if (got > 0) {
        got = PyDict_SetItem(recorded, name, fresh);
        Py_DECREF(fresh);
    }
    Py_DECREF(value);
    Py_XDECREF(old);
    return got;
}

int record_in_dict(Recorder *r, int record, PyObject *recorded, PyObject *name, PyObject *value, PyObject *helpers)
{
    return record_new_value(r, record, recorded, name, PyDict_GetItemWithError(recorded, name), value, helpers);
}

int append_name_record(Recorder *r, int record, PyObject *name)
{
    PyObject *prefix = prefix_of(r, SET, name); /* SET in one byte, and then the name */
    if (prefix == NULL || reserve(&r->pending, PyBytes_GET_SIZE(prefix)) < 0)
        return -1;
    put_byte(&r->pending, record);
    put_raw(&r->pending, PyBytes_AS_STRING(prefix) + 1, PyBytes_GET_SIZE(prefix) - 1);
    return 0;
}

int delete_from_dict(Recorder *r, int record, PyObject *recorded, PyObject *name)
{
    PyObject *old = PyDict_GetItemWithError(recorded, name);
    if (old == NULL)
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(old);
    int failed = PyDict_DelItem(recorded, name) < 0 || append_name_record(r, record, name) < 0 ||
                 (IS_ENTRY(old) && drop_holder(r, (Entry *)old) < 0);
    Py_DECREF(old);
    return failed ? -1 : 0;
}

/* PyDict_GetItemWithError for a dict whose keys are all str. It first tries *place, where the name was found before: a
 * key keeps its index until the dict is resized, and that costs a fifth of a search. */
static PyObject *get_at_place(PyObject *dict, PyObject *name, Py_ssize_t *place)
{
    PyDictKeysObject *keys = ((PyDictObject *)dict)->ma_keys;
    Py_hash_t hash = ((PyASCIIObject *)name)->hash;
    if (keys->dk_kind != DICT_KEYS_UNICODE || ((PyDictObject *)dict)->ma_values != NULL || hash == -1)
        return PyDict_GetItemWithError(dict, name);
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    if (*place < keys->dk_nentries && entries[*place].me_key == name)
        return entries[*place].me_value;
    /* The search of CPython. Most names that are not found here are not there: the first place for them is empty. */
    size_t mask = ((size_t)1 << keys->dk_log2_size) - 1, at = (size_t)hash & mask, perturb = (size_t)hash;
    for (;;) {
        Py_ssize_t index = index_in_keys(keys, at);
        if (index == -1)
            return NULL;
        if (index >= 0 && entries[index].me_key == name) {
            *place = index;
            return entries[index].me_value;
        }
        if (index >= 0 && ((PyASCIIObject *)entries[index].me_key)->hash == hash)
            return PyDict_GetItemWithError(dict, name); /* probably an equal text in another object */
        perturb >>= 5;
        at = (at * 5 + perturb + 1) & mask;
    }
}

/* Returns where a name was last found. Names whose addresses collide take the place of each other. */
static NamePlaces *places_of(Recorder *r, PyObject *name)
{
    NamePlaces *places = &r->places[((uintptr_t)name >> 4) * 0x9E3779B97F4A7C15ull >> (64 - PLACES_BITS)];
    if (places->name != name)
        *places = (NamePlaces){.name = name};
    return places;
}

/* A key that is not exactly a str may have the hash of the name, and comparing the two would run user code. */
static PyObject *find_at_place(Recorder *r, PyObject *name, Py_ssize_t *place)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (((PyDictObject *)r->names)->ma_keys->dk_kind != DICT_KEYS_GENERAL)
        return get_at_place(r->names, name, place);
    while (PyDict_Next(r->names, &at, &key, &value))
        if (key == name || (PyUnicode_CheckExact(key) && is_equal(&PyUnicode_Type, key, name)))
            return value;
    return NULL;
}

PyObject *find_name(Recorder *r, PyObject *name) { return find_at_place(r, name, &places_of(r, name)->in_names); }

int read_namespace(Recorder *r, PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        NamePlaces *places = places_of(r, name);
        PyObject *value = find_at_place(r, name, &places->in_names);
        PyObject *old = get_at_place(r->recorded, name, &places->in_recorded);
        if (old == NULL && PyErr_Occurred())
            return -1;
        if (value == NULL ? old != NULL && delete_from_dict(r, FORGET, r->recorded, name) < 0
                          : record_new_value(r, GLOBAL, r->recorded, name, old, value, r->helpers) < 0)
            return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}
