/* A growing byte buffer with the number encoding of records, and a hash map of pointers. */
#ifndef BUFFER_H
#define BUFFER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    unsigned char *data;
    Py_ssize_t used, capacity;
} Buffer;

enum { MAX_NUMBER_BYTES = 10 };

/* Reserves space for size more bytes. Returns 0, or -1 with MemoryError set. */
int reserve(Buffer *b, Py_ssize_t size);

/* Grows *array, an array of capacity items, to hold at least one more. Returns 0, or -1 with MemoryError set. */
int grow_array(void *array, Py_ssize_t *capacity, size_t item_size);

/* Reserves space and appends a bytes object. */
int append_bytes(Buffer *b, PyObject *bytes);

/* The put functions append without a check. The caller must have reserved the space. */
static inline void put_byte(Buffer *b, int value) { b->data[b->used++] = (unsigned char)value; }

static inline void put_number(Buffer *b, unsigned long long n)
{
    while (n > 127) {
        put_byte(b, (int)(n & 127) | 128);
        n >>= 7;
    }
    put_byte(b, (int)n);
}

static inline void put_signed(Buffer *b, long long n)
{
    put_number(b, ((unsigned long long)n << 1) ^ (unsigned long long)(n >> 63));
}

static inline void put_raw(Buffer *b, const void *data, Py_ssize_t size)
{
    memcpy(b->data + b->used, data, size);
    b->used += size;
}

/* Map maps pointers to pointers by open addressing. slots is a power of two; used also counts removed keys. */
typedef struct {
    void **keys, **values; /* a value is NULL in a slot without a key */
    size_t slots, used;
} Map;

void *map_get(const Map *m, const void *key); /* NULL if the map does not have the key */
int map_set(Map *m, void *key, void *value);  /* 0, or -1 with MemoryError set */
void map_remove(Map *m, const void *key);
void map_free(Map *m);

#endif
