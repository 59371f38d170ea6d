#include "buffer.h"

int reserve(Buffer *b, Py_ssize_t size)
{
    if (b->used + size <= b->capacity)
        return 0;
    Py_ssize_t capacity = 2 * b->capacity + size + 256;
    unsigned char *data = PyMem_Realloc(b->data, capacity);
    if (data == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    b->data = data;
    b->capacity = capacity;
    return 0;
}

int grow_array(void *array, Py_ssize_t *capacity, size_t item_size)
{
    void *items;
    memcpy(&items, array, sizeof items);
    Py_ssize_t wanted = 2 * *capacity + 64;
    items = PyMem_Realloc(items, wanted * item_size);
    if (items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(array, &items, sizeof items);
    *capacity = wanted;
    return 0;
}

int append_bytes(Buffer *b, PyObject *bytes)
{
    if (reserve(b, PyBytes_GET_SIZE(bytes)) < 0)
        return -1;
    put_raw(b, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
    return 0;
}

static char tombstone; /* its address marks the slot of a removed key */

static inline size_t slot_of(const Map *m, const void *key)
{
    return ((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15ull >> 20 & (m->slots - 1);
}

void *map_get(const Map *m, const void *key)
{
    if (m->slots == 0)
        return NULL;
    for (size_t i = slot_of(m, key);; i = (i + 1) & (m->slots - 1)) {
        if (m->keys[i] == key)
            return m->values[i];
        if (m->keys[i] == NULL)
            return NULL;
    }
}

static int is_live(const void *key) { return key != NULL && key != &tombstone; }

/* Rebuilds the map without removed keys, with at most a quarter of its slots in use. */
static int rebuild(Map *m)
{
    Map fresh = {.slots = 64};
    size_t live = 0;
    for (size_t i = 0; i < m->slots; i++)
        live += is_live(m->keys[i]);
    while (fresh.slots < 4 * (live + 1))
        fresh.slots *= 2;
    fresh.keys = PyMem_Calloc(fresh.slots, sizeof(void *));
    fresh.values = PyMem_Calloc(fresh.slots, sizeof(void *));
    if (fresh.keys == NULL || fresh.values == NULL) {
        map_free(&fresh);
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < m->slots; i++)
        if (is_live(m->keys[i]))
            map_set(&fresh, m->keys[i], m->values[i]);
    map_free(m);
    *m = fresh;
    return 0;
}

int map_set(Map *m, void *key, void *value)
{
    if (3 * (m->used + 1) > 2 * m->slots && rebuild(m) < 0)
        return -1;
    size_t i = slot_of(m, key);
    while (m->keys[i] != NULL && m->keys[i] != key)
        i = (i + 1) & (m->slots - 1);
    m->used += m->keys[i] == NULL;
    m->keys[i] = key;
    m->values[i] = value;
    return 0;
}

void map_remove(Map *m, const void *key)
{
    if (m->slots == 0)
        return;
    for (size_t i = slot_of(m, key); m->keys[i] != NULL; i = (i + 1) & (m->slots - 1))
        if (m->keys[i] == key) {
            m->keys[i] = &tombstone;
            m->values[i] = NULL;
            return;
        }
}

void map_free(Map *m)
{
    PyMem_Free(m->keys);
    PyMem_Free(m->values);
    memset(m, 0, sizeof *m);
}
