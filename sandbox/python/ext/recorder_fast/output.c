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
    if (args != NULL)
        result = PyObject_CallObject(function, args);
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

int append_scalar(Recorder *r, Buffer *b, PyObject *prefix, PyObject *value)
{
    PyTypeObject *kind = Py_TYPE(value);
    PyObject *encoded = NULL, *text = NULL; /* encoded by Python, in rare cases; of a Raw */
    const char *data = NULL;
    Py_ssize_t size = 0, prefix_size = prefix ? PyBytes_GET_SIZE(prefix) : 0;
    long long integer = 0;
    int tag = 0, overflow = 0;
    if (!is_scalar(kind) && (PyObject *)kind != r->raw)
        return 0;
    if (kind == &PyLong_Type) {
        if (!small_int(value, &integer))
            integer = PyLong_AsLongLongAndOverflow(value, &overflow);
        tag = !overflow && integer < 1LL << 62 && integer > -(1LL << 62) ? 'i' : 0;
    } else if (kind == &PyUnicode_Type && PyUnicode_IS_COMPACT_ASCII(value) && PyUnicode_GET_LENGTH(value) <= MAX_TEXT) {
        tag = 's';
        data = (const char *)PyUnicode_1BYTE_DATA(value);
        size = PyUnicode_GET_LENGTH(value);
    } else if (kind == &PyFloat_Type)
        tag = 'f';
    else if (kind == &PyBool_Type)
        tag = value == Py_True ? 'T' : 'F';
    else if (value == Py_None)
        tag = 'N';
    else if (kind == &PyBytes_Type && PyBytes_GET_SIZE(value) <= MAX_TEXT) {
        tag = 'b';
        data = PyBytes_AS_STRING(value);
        size = PyBytes_GET_SIZE(value);
    }
    else if ((PyObject *)kind == r->raw && (text = PyObject_GetAttrString(value, "text")) != NULL &&
             PyUnicode_Check(text) &&
             PyUnicode_IS_COMPACT_ASCII(text)) { /* value holds the text */
        tag = 'R';
        data = (const char *)PyUnicode_1BYTE_DATA(text);
        size = PyUnicode_GET_LENGTH(text);
    }
    Py_XDECREF(text);
    if (tag == 0) {
        PyErr_Clear();
        encoded = PyObject_CallMethod(r->format, "scalar", "O", value);
        if (encoded == NULL || encoded == Py_None) {
            Py_XDECREF(encoded);
            return encoded ? 0 : -1;
        }
    }
    if (reserve(b, prefix_size + size + 24 + (encoded ? PyBytes_GET_SIZE(encoded) : 0)) < 0) {
        Py_XDECREF(encoded);
        return -1;
    }
    if (prefix)
        put_raw(b, PyBytes_AS_STRING(prefix), prefix_size);
    if (encoded) {
        put_raw(b, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
        Py_DECREF(encoded);
        return 1;
    }
    if (tag == 'f') {
        put_float(b, PyFloat_AS_DOUBLE(value));
        return 1;
    }
    put_byte(b, tag);
    if (tag == 'i')
        put_signed(b, integer);
    else if (data) {
        put_number(b, (unsigned long long)size);
        put_raw(b, data, size);
    }
    return 1;
}
