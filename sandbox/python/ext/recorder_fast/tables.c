/* Compares numpy arrays, and the series and frames of pandas, by their values: tables.py. These functions run no
 * user code. */
#include "objects.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

enum { MAX_ARRAYS = 256, C_CONTIGUOUS = 1, F_CONTIGUOUS = 2, OWNS_DATA = 4, KNOWN_TYPES = 64 };

/* The fields of an array: PyArrayObject_fields of numpy, the same in all its versions. */
typedef struct {
    PyObject_HEAD
    char *data;
    int dimensions;
    Py_ssize_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
} Array;

/* The arrays that a table holds, with references, and a digest of its other parts. */
typedef struct {
    PyTypeObject *array_type;
    Array *arrays[MAX_ARRAYS];
    Py_ssize_t item_sizes[MAX_ARRAYS];
    int count;
    Py_ssize_t bytes;
    unsigned long long digest;
} Parts;

static unsigned long long mix(unsigned long long digest, unsigned long long word)
{
    digest = (digest ^ word) * 0x9E3779B97F4A7C15ull;
    return digest ^ digest >> 32;
}

/* Mixes words into four sums in turn, because a multiplication waits for the one before it. */
static unsigned long long mix_words(unsigned long long digest, const char *data, Py_ssize_t stride, Py_ssize_t count)
{
    unsigned long long sums[4] = {digest, ~digest, digest << 1, ~digest << 1}, word;
    for (; count >= 4; count -= 4)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++, data += stride) {
            memcpy(&word, data, 8);
            sums[i] = mix(sums[i], word);
        }
    for (; count > 0; count--, data += stride) {
        memcpy(&word, data, 8);
        sums[0] = mix(sums[0], word);
    }
    return mix(mix(sums[0], sums[1]), mix(sums[2], sums[3]));
}

static unsigned long long mix_bytes(unsigned long long digest, const char *data, Py_ssize_t size)
{
    unsigned long long word = 0;
    if (size >= 8)
        digest = mix_words(digest, data, 8, size / 8);
    memcpy(&word, data + (size & ~(Py_ssize_t)7), size & 7);
    return size & 7 ? mix(digest, word) : digest;
}

static Py_ssize_t array_size(Array *a)
{
    Py_ssize_t size = 1;
    for (int i = 0; i < a->dimensions; i++)
        size *= a->shape[i];
    return size;
}

/* The names of the attributes that are read. */
static PyObject *manager_name, *axes_name, *blocks_name, *values_name, *item_size_name;
static PyObject *array_names[3], *other_names[2];

int prepare_tables(void)
{
    static const struct {
        PyObject **name;
        const char *text;
    } names[] = {
        {&manager_name, "_mgr"},       {&axes_name, "axes"},         {&blocks_name, "blocks"},
        {&values_name, "values"},      {&item_size_name, "itemsize"}, {&array_names[0], "_ndarray"},
        {&array_names[1], "_data"},    {&array_names[2], "_mask"},   {&other_names[0], "_pa_array"},
        {&other_names[1], "_dtype"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].name = PyUnicode_InternFromString(names[i].text)) == NULL)
            return -1;
    return 0;
}

/* Returns the bytes of an item of this type; -1 with an exception set. It keeps a reference to some types. */
static Py_ssize_t item_size(PyObject *dtype)
{
    static struct {
        PyObject *dtype;
        Py_ssize_t size;
    } known[KNOWN_TYPES];
    size_t slot = mix(0, (uintptr_t)dtype) % KNOWN_TYPES;
    if (known[slot].dtype == dtype)
        return known[slot].size;
    PyObject *number = PyObject_GetAttr(dtype, item_size_name);
    Py_ssize_t size = number ? PyLong_AsSsize_t(number) : -1;
    Py_XDECREF(number);
    if (size >= 0) {
        Py_XSETREF(known[slot].dtype, Py_NewRef(dtype));
        known[slot].size = size;
    }
    return size;
}

static int add_array(Parts *parts, PyObject *object)
{
    Array *a = (Array *)object;
    if (parts->count == MAX_ARRAYS)
        return 0;
    Py_ssize_t size = item_size(a->dtype);
    if (size < 0)
        return -1;
    parts->item_sizes[parts->count] = size;
    parts->arrays[parts->count++] = (Array *)Py_NewRef(a);
    parts->bytes += size * array_size(a);
    return 0;
}

/* Adds the arrays of the values of a block: an array, or an extension array that holds one or more. */
static int add_values(Parts *parts, PyObject *values)
{
    PyObject *found;
    if (Py_IS_TYPE(values, parts->array_type))
        return add_array(parts, values);
    parts->digest = mix(parts->digest, (uintptr_t)values);
    for (int i = 0; i < 3; i++) {
        if (find_attribute(values, array_names[i], &found) < 0)
            return -1;
        int failed = found != NULL && Py_IS_TYPE(found, parts->array_type) && add_array(parts, found) < 0;
        Py_XDECREF(found);
        if (failed)
            return -1;
    }
    for (int i = 0; i < 2; i++) {
        if (find_attribute(values, other_names[i], &found) < 0)
            return -1;
        parts->digest = mix(parts->digest, (uintptr_t)found);
        Py_XDECREF(found);
    }
    return 0;
}

int may_share(PyObject *array) { return ((Array *)array)->base != NULL || Py_REFCNT(array) > 2; }

/* Returns the address of an item by its number in the order of C. */
static const char *item_at(Array *a, Py_ssize_t number, Py_ssize_t item_bytes)
{
    if (a->flags & C_CONTIGUOUS)
        return a->data + number * item_bytes;
    const char *at = a->data;
    for (int i = a->dimensions - 1; i >= 0; i--) {
        at += number % a->shape[i] * a->strides[i];
        number /= a->shape[i];
    }
    return at;
}

static unsigned long long mix_items(unsigned long long digest, Array *a, Py_ssize_t item_bytes, Py_ssize_t first,
                                    Py_ssize_t step, Py_ssize_t count)
{
    if (step == 1 && a->flags & C_CONTIGUOUS)
        return mix_bytes(digest, a->data + first * item_bytes, count * item_bytes);
    if (item_bytes == 8 && a->flags & C_CONTIGUOUS)
        return mix_words(digest, a->data + first * 8, step * 8, count);
    for (Py_ssize_t i = 0; i < count; i++)
        digest = mix_bytes(digest, item_at(a, first + i * step, item_bytes), item_bytes);
    return digest;
}

static unsigned long long mix_array(unsigned long long digest, Array *a, Py_ssize_t item_bytes, int whole)
{
    Py_ssize_t size = array_size(a), few = size < MAX_SAMPLE ? size : MAX_SAMPLE;
    digest = mix(mix(digest, (uintptr_t)a->dtype), a->dimensions);
    for (int i = 0; i < a->dimensions; i++)
        digest = mix(digest, a->shape[i]);
    if (whole && a->flags & (C_CONTIGUOUS | F_CONTIGUOUS))
        return mix_bytes(digest, a->data, size * item_bytes);
    if (whole)
        return mix_items(digest, a, item_bytes, 0, 1, size);
    digest = mix_items(digest, a, item_bytes, 0, 1, few);
    digest = mix_items(digest, a, item_bytes, size - few, 1, few);
    return mix_items(digest, a, item_bytes, 0, few ? size / few : 1, few);
}

/* Tells whether neither numpy nor a bytes object has allocated the memory of an array: mapped_memory.py. */
static int is_foreign(Array *a, PyTypeObject *array_type)
{
    while (!(a->flags & OWNS_DATA)) {
        if (a->base == NULL || !PyObject_TypeCheck(a->base, array_type))
            return a->base == NULL || !PyBytes_CheckExact(a->base);
        a = (Array *)a->base;
    }
    return 0;
}

/* Tells whether the memory of an array can be read without a signal: mapped_memory.problem. */
static int has_memory(Array *a, PyTypeObject *array_type, Py_ssize_t item_bytes)
{
    if (item_bytes == 0 || array_size(a) == 0 || !is_foreign(a, array_type))
        return 1;
    uintptr_t first = (uintptr_t)a->data, last = first + item_bytes - 1, page = sysconf(_SC_PAGESIZE);
    for (int i = 0; i < a->dimensions; i++)
        *(a->strides[i] < 0 ? &first : &last) += (a->shape[i] - 1) * a->strides[i];
    return madvise((void *)(first & -page), page, MADV_POPULATE_READ) == 0 &&
           madvise((void *)(last & -page), page, MADV_POPULATE_READ) == 0;
}

static int has_type_of(PyObject *object, PyObject *types)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); i++)
        if ((PyObject *)Py_TYPE(object) == PyTuple_GET_ITEM(types, i))
            return 1;
    return 0;
}

/* Reads the axes and blocks of a DataFrame or Series. The last axis has the rows. Returns 1, -1, or 0 if the block
 * manager or a block is not of pandas, so that its attributes may be code of the user's. */
static int add_blocks(PyObject *v, Reader *reader, Parts *parts, Sample *p, PyObject **rows)
{
    PyObject *manager_types = PyTuple_GET_ITEM(reader->members, 1);
    PyObject *block_types = PyTuple_GET_ITEM(reader->members, 2);
    PyObject *manager = PyObject_GenericGetAttr(v, manager_name), *axes = NULL, *blocks = NULL;
    int done = manager != NULL && !has_type_of(manager, manager_types) ? 0 : -1;
    if (manager == NULL || done == 0 || (axes = PyObject_GetAttr(manager, axes_name)) == NULL ||
        (blocks = PyObject_GetAttr(manager, blocks_name)) == NULL)
        goto end;
    if (!PyList_Check(axes) || !PyTuple_Check(blocks) || PyList_GET_SIZE(axes) == 0) {
        PyErr_SetString(PyExc_TypeError, "the block manager of a table has no axes or blocks");
        goto end;
    }
    p->owns_items = 1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(axes) && p->used < MAX_SAMPLE; i++)
        p->items[p->used++] = *rows = Py_NewRef(PyList_GET_ITEM(axes, i));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(blocks); i++) {
        PyObject *block = PyTuple_GET_ITEM(blocks, i);
        if (!has_type_of(block, block_types)) {
            done = 0;
            goto end;
        }
        PyObject *values = PyObject_GetAttr(block, values_name);
        int failed = values == NULL || add_values(parts, values) < 0;
        Py_XDECREF(values);
        if (p->used < 2 * MAX_SAMPLE)
            p->items[p->used++] = Py_NewRef(block);
        if (failed)
            goto end;
    }
    done = 1;
end:
    Py_XDECREF(manager);
    Py_XDECREF(axes);
    Py_XDECREF(blocks);
    return done;
}

/* Mixes the values of a table into its digest. Returns 1, or 0 if memory of a mapped file is gone. */
static int mix_arrays(Parts *parts)
{
    for (int i = 0; i < parts->count; i++) {
        if (!has_memory(parts->arrays[i], parts->array_type, parts->item_sizes[i]))
            return 0;
        parts->digest =
            mix_array(parts->digest, parts->arrays[i], parts->item_sizes[i], parts->bytes <= MAX_COMPARED_BYTES);
    }
    return 1;
}

int peek_table(PyObject *v, Entry *e, Sample *p)
{
    Parts parts = {.array_type = (PyTypeObject *)PyTuple_GET_ITEM(e->reader->members, 0)};
    PyObject *rows = NULL;
    int is_array = e->reader->how == PEEK_ARRAY;
    int done = !is_array ? add_blocks(v, e->reader, &parts, p, &rows) : add_array(&parts, v) < 0 ? -1 : 1;
    if (done > 0)
        done = mix_arrays(&parts);
    for (int i = 0; i < parts.count; i++)
        Py_DECREF(parts.arrays[i]);
    if (done > 0) {
        p->digest = parts.digest;
        if (is_array)
            p->length = ((Array *)v)->dimensions > 0 ? ((Array *)v)->shape[0] : -1;
        else if (p->used == e->token_size && memcmp(p->items, e->token, p->used * sizeof *p->items) == 0)
            p->length = e->length;
        else
            p->length = PyObject_Size(rows); /* it is slow, and the same as long as the axes are */
        if (is_array || p->length >= 0)
            return 0;
    }
    release_sample(p, 0);
    clear_sample(p); /* recorder_objects.py finds the reason why the table is not read */
    return done == 0 ? 0 : -1;
}
