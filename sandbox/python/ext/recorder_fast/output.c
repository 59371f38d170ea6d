#include "output.h"

int drain(Recorder *r)
{
    Buffer *b = &r->pending;
    if (b->used == 0)
        return 0;
    Py_ssize_t size = PyByteArray_GET_SIZE(r->out);
    if (PyByteArray_Resize(r->out, size + b->used) < 0)
        return -1;
    memcpy(PyByteArray_AS_STRING(r->out) + size, b->data, b->used);
    b->used = 0;
    return 0;
}

PyObject *call_python(Recorder *r, PyObject *object, const char *method, const char *format, ...)
{
    r->called_python = 1;
    if (drain(r) < 0)
        return NULL;
    PyObject *function = PyObject_GetAttrString(object, method), *result = NULL;
    va_list values;
    va_start(values, format);
    PyObject *args = function ? Py_VaBuildValue(format, values) : NULL;
    va_end(values);
    if (args != NULL) {
        int is_paused = strncmp(method, "_stop", 5) != 0 && pause_evaluator(); /* a stopped program may run user code */
        result = PyObject_CallObject(function, args);
        if (is_paused)
            resume_evaluator();
    }
    Py_XDECREF(function);
    Py_XDECREF(args);
    return result;
}

static unsigned long long *counter(Recorder *r, int offset) { return (unsigned long long *)((char *)r->ring.buf + offset); }

/* Waits until the ring has space for size bytes. */
static int wait_for_space(Recorder *r, Py_ssize_t size)
{
    for (int tries = 0; size > r->ring_space; tries++) {
        if (r->ring.buf == NULL || tries > 1) {
            PyErr_SetString(PyExc_BufferError, "the ring stays full");
            return -1;
        }
        if (tries == 1) {
            PyObject *done = PyObject_CallNoArgs(r->wait);
            r->called_python = 1;
            Py_XDECREF(done);
            if (done == NULL)
                return -1;
        }
        if (r->ring.buf != NULL) {
            unsigned long long read = __atomic_load_n(counter(r, RING_READ_OFFSET), __ATOMIC_ACQUIRE);
            r->ring_space = RING_SIZE - (long long)(r->written - read);
        }
    }
    return 0;
}

/* recorder_ring.Ring.put */
static int write_to_ring(Recorder *r, const unsigned char *data, Py_ssize_t size)
{
    while (size > 0) {
        Py_ssize_t now = size < MAX_RING_WRITE ? size : MAX_RING_WRITE;
        if (now > r->ring_space && wait_for_space(r, now) < 0)
            return -1;
        Py_ssize_t at = r->written % RING_SIZE, first = now < RING_SIZE - at ? now : RING_SIZE - at;
        unsigned char *ring = (unsigned char *)r->ring.buf + RING_HEAD;
        memcpy(ring + at, data, first);
        if (now > first)
            memcpy(ring, data + first, now - first);
        r->ring_space -= now;
        r->written += now;
        __atomic_store_n(counter(r, 0), r->written, __ATOMIC_RELEASE);
        data += now;
        size -= now;
    }
    return 0;
}

int flush(Recorder *r)
{
    if (PyByteArray_GET_SIZE(r->out) == 0) {
        Py_ssize_t size = r->pending.used;
        r->pending.used = 0;
        return write_to_ring(r, r->pending.data, size);
    }
    PyObject *out = Py_NewRef(r->out);
    int failed = drain(r) < 0 || write_to_ring(r, (unsigned char *)PyByteArray_AS_STRING(out), PyByteArray_GET_SIZE(out)) < 0 ||
                 PyByteArray_Resize(out, 0) < 0;
    Py_DECREF(out);
    return failed ? -1 : 0;
}

/* Appends a float, as a decimal if a short decimal is exact. */
static void put_float(Buffer *b, double d)
{
    static const double powers[] = {1, 10, 100, 1e3, 1e4};
    for (int i = 0; d != 0 && i < 5; i++) {
        double m = d * powers[i];
        if (!(m > -1e9 && m < 1e9))
            break;
        long long whole = (long long)(m < 0 ? m - 0.5 : m + 0.5);
        if ((double)whole / powers[i] == d) {
            put_byte(b, 'd');
            put_byte(b, i);
            put_signed(b, whole);
            return;
        }
    }
    put_byte(b, 'f');
    PyFloat_Pack8(d, (char *)b->data + b->used, 1);
    b->used += 8;
}

/* Reserves space for a prefix and size more bytes, and appends the prefix. */
static inline int begin_value(Buffer *b, PyObject *prefix, Py_ssize_t size)
{
    Py_ssize_t prefix_size = prefix ? PyBytes_GET_SIZE(prefix) : 0;
    if (reserve(b, prefix_size + size) < 0)
        return -1;
    if (prefix_size <= 2) /* nearly always, and faster without a call */
        for (Py_ssize_t i = 0; i < prefix_size; i++)
            put_byte(b, PyBytes_AS_STRING(prefix)[i]);
    else
        put_raw(b, PyBytes_AS_STRING(prefix), prefix_size);
    return 0;
}

static int append_text(Buffer *b, PyObject *prefix, int tag, const void *data, Py_ssize_t size)
{
    if (begin_value(b, prefix, size + MAX_NUMBER_BYTES + 1) < 0)
        return -1;
    put_byte(b, tag);
    put_number(b, (unsigned long long)size);
    put_raw(b, data, size);
    return 1;
}

/* Appends a value that only Python can encode: in rare cases. */
static int append_in_python(Recorder *r, Buffer *b, PyObject *prefix, PyObject *value)
{
    PyObject *encoded = PyObject_CallMethod(r->format, "scalar", "O", value);
    int written = encoded == NULL ? -1 : encoded != Py_None;
    if (written > 0) {
        if (begin_value(b, prefix, PyBytes_GET_SIZE(encoded)) < 0)
            written = -1;
        else
            put_raw(b, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
    }
    Py_XDECREF(encoded);
    return written;
}

/* Appends a Raw of library_values. */
static int append_shown(Recorder *r, Buffer *b, PyObject *prefix, PyObject *value)
{
    PyObject *text = PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 1 ? PyTuple_GET_ITEM(value, 0) : Py_None;
    if (PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT_ASCII(text))
        return append_text(b, prefix, 'R', PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text));
    return append_in_python(r, b, prefix, value);
}

int append_scalar(Recorder *r, Buffer *b, PyObject *prefix, PyObject *value)
{
    PyTypeObject *kind = Py_TYPE(value);
    if (kind == &PyUnicode_Type) {
        if (PyUnicode_IS_COMPACT_ASCII(value) && PyUnicode_GET_LENGTH(value) <= MAX_TEXT)
            return append_text(b, prefix, 's', PyUnicode_1BYTE_DATA(value), PyUnicode_GET_LENGTH(value));
    } else if (kind == &PyFloat_Type) {
        if (begin_value(b, prefix, MAX_NUMBER_BYTES + 2) < 0)
            return -1;
        put_float(b, PyFloat_AS_DOUBLE(value));
        return 1;
    } else if (kind == &PyLong_Type) {
        long long integer = 0;
        int overflow = 0;
        if (!small_int(value, &integer))
            integer = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow && integer < 1LL << 62 && integer > -(1LL << 62)) {
            if (begin_value(b, prefix, MAX_NUMBER_BYTES + 1) < 0)
                return -1;
            put_byte(b, 'i');
            put_signed(b, integer);
            return 1;
        }
    } else if (kind == &PyBool_Type || value == Py_None) {
        if (begin_value(b, prefix, 1) < 0)
            return -1;
        put_byte(b, value == Py_None ? 'N' : value == Py_True ? 'T' : 'F');
        return 1;
    } else if ((PyObject *)kind == r->raw)
        return append_shown(r, b, prefix, value);
    else if (kind == &PyBytes_Type && PyBytes_GET_SIZE(value) <= MAX_TEXT)
        return append_text(b, prefix, 'b', PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    else if (!is_scalar(kind))
        return 0;
    return append_in_python(r, b, prefix, value);
}
