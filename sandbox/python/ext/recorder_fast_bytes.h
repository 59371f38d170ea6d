/* Bytes, maps, scalars as records, and the ring. */

static int more(Bytes *b, Py_ssize_t wanted)
{
    if (b->used + wanted <= b->size)
        return 0;
    Py_ssize_t size = 2 * b->size + wanted + 256;
    unsigned char *at = PyMem_Realloc(b->at, size);
    if (at == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    b->at = at;
    b->size = size;
    return 0;
}

static inline void byte(Bytes *b, int value) { b->at[b->used++] = (unsigned char)value; }

/* number, raw and the like: the caller has seen to the room, 10 bytes a number. */
static inline void number(Bytes *b, unsigned long long n)
{
    while (n > 127) {
        byte(b, (int)(n & 127) | 128);
        n >>= 7;
    }
    byte(b, (int)n);
}

static inline void zigzag(Bytes *b, long long n) { number(b, ((unsigned long long)n << 1) ^ (unsigned long long)(n >> 63)); }

static inline void raw(Bytes *b, const void *data, Py_ssize_t size)
{
    memcpy(b->at + b->used, data, size);
    b->used += size;
}

static int append(Bytes *b, PyObject *bytes)
{
    if (more(b, PyBytes_GET_SIZE(bytes)) < 0)
        return -1;
    raw(b, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
    return 0;
}

static char removed; /* its address marks a place in a map that was used */

static inline size_t place(Map *m, void *key) { return ((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15ull >> 20 & (m->size - 1); }

static void *find(Map *m, void *key)
{
    if (m->size == 0)
        return NULL;
    for (size_t i = place(m, key);; i = (i + 1) & (m->size - 1)) {
        if (m->keys[i] == key)
            return m->values[i];
        if (m->keys[i] == NULL)
            return NULL;
    }
}

static int put(Map *m, void *key, void *value)
{
    if (3 * (m->used + 1) > 2 * m->size) {
        Map fresh = {.size = 64};
        size_t live = 0;
        for (size_t i = 0; i < m->size; i++)
            live += m->keys[i] != NULL && m->keys[i] != &removed;
        while (fresh.size < 4 * (live + 1))
            fresh.size *= 2;
        fresh.keys = PyMem_Calloc(fresh.size, sizeof(void *));
        fresh.values = PyMem_Calloc(fresh.size, sizeof(void *));
        if (fresh.keys == NULL || fresh.values == NULL) {
            PyMem_Free(fresh.keys);
            PyMem_Free(fresh.values);
            PyErr_NoMemory();
            return -1;
        }
        for (size_t i = 0; i < m->size; i++)
            if (m->keys[i] != NULL && m->keys[i] != &removed)
                put(&fresh, m->keys[i], m->values[i]);
        PyMem_Free(m->keys);
        PyMem_Free(m->values);
        *m = fresh;
    }
    size_t i = place(m, key);
    while (m->keys[i] != NULL && m->keys[i] != key)
        i = (i + 1) & (m->size - 1);
    m->used += m->keys[i] == NULL;
    m->keys[i] = key;
    m->values[i] = value;
    return 0;
}

static void take_out(Map *m, void *key)
{
    if (m->size == 0)
        return;
    for (size_t i = place(m, key); m->keys[i] != NULL; i = (i + 1) & (m->size - 1))
        if (m->keys[i] == key) {
            m->keys[i] = &removed;
            m->values[i] = NULL;
            return;
        }
}

static void empty(Map *m)
{
    PyMem_Free(m->keys);
    PyMem_Free(m->values);
    memset(m, 0, sizeof *m);
}

/* Moves what is pending to where the Python side writes: before any of it does. */
static int drain(State *s)
{
    Bytes *b = &s->pending;
    if (b->used == 0)
        return 0;
    Py_ssize_t size = PyByteArray_GET_SIZE(s->out);
    if (PyByteArray_Resize(s->out, size + b->used) < 0)
        return -1;
    memcpy(PyByteArray_AS_STRING(s->out) + size, b->at, b->used);
    b->used = 0;
    return 0;
}

static unsigned long long *counter(State *s, int at) { return (unsigned long long *)((char *)s->ring.buf + at); }

/* recorder_ring.Ring.put */
static int hand_over(State *s, const unsigned char *data, Py_ssize_t size)
{
    while (size > 0) {
        Py_ssize_t now = size < RING_MOST ? size : RING_MOST;
        for (int tries = 0; now > s->room; tries++) {
            if (s->ring.buf == NULL || tries > 1) {
                PyErr_SetString(PyExc_BufferError, "the ring stays full");
                return -1;
            }
            if (tries == 1) {
                PyObject *done = PyObject_CallNoArgs(s->wait);
                s->called = 1;
                Py_XDECREF(done);
                if (done == NULL)
                    return -1;
            }
            if (s->ring.buf != NULL)
                s->room = RING_SIZE - (long long)(s->written - __atomic_load_n(counter(s, RING_READ), __ATOMIC_ACQUIRE));
        }
        Py_ssize_t at = s->written % RING_SIZE, first = now < RING_SIZE - at ? now : RING_SIZE - at;
        unsigned char *ring = (unsigned char *)s->ring.buf + RING_HEAD;
        memcpy(ring + at, data, first);
        if (now > first)
            memcpy(ring, data + first, now - first);
        s->room -= now;
        s->written += now;
        __atomic_store_n(counter(s, 0), s->written, __ATOMIC_RELEASE);
        data += now;
        size -= now;
    }
    return 0;
}

/* Hands over all that was written. */
static int flush(State *s)
{
    int failed;
    if (PyByteArray_GET_SIZE(s->out) == 0) {
        Py_ssize_t size = s->pending.used;
        s->pending.used = 0;
        failed = hand_over(s, s->pending.at, size);
    } else {
        PyObject *out = s->out;
        Py_INCREF(out);
        failed = drain(s) < 0 || hand_over(s, (unsigned char *)PyByteArray_AS_STRING(out), PyByteArray_GET_SIZE(out)) < 0 || PyByteArray_Resize(out, 0) < 0;
        Py_DECREF(out);
    }
    return failed ? -1 : 0;
}

/* Whether values of a class are written whole: recorder_format.SCALARS. */
static inline int is_scalar(PyTypeObject *kind)
{
    return kind == &PyLong_Type || kind == &PyUnicode_Type || kind == &PyFloat_Type || kind == &PyBool_Type || kind == Py_TYPE(Py_None) ||
           kind == &PyBytes_Type || kind == &PyComplex_Type || kind == &PyEllipsis_Type;
}

/* Appends a float: as a decimal, where it is a short one. */
static void floating(Bytes *b, double d)
{
    static const double powers[] = {1, 10, 100, 1e3, 1e4};
    for (int i = 0; d != 0 && i < 5; i++) {
        double m = d * powers[i];
        if (!(m > -1e9 && m < 1e9))
            break;
        long long whole = (long long)(m < 0 ? m - 0.5 : m + 0.5);
        if ((double)whole / powers[i] == d) {
            byte(b, 'd');
            byte(b, i);
            zigzag(b, whole);
            return;
        }
    }
    byte(b, 'f');
    PyFloat_Pack8(d, (char *)b->at + b->used, 1);
    b->used += 8;
}

/* Appends a scalar after head, which may be NULL; 0 where it is an object here. */
static int scalar(State *s, Bytes *b, PyObject *head, PyObject *value)
{
    PyTypeObject *kind = Py_TYPE(value);
    PyObject *made = NULL;
    const char *data = NULL;
    Py_ssize_t size = 0, before = head ? PyBytes_GET_SIZE(head) : 0;
    long long integer = 0;
    int tag = 0, overflow = 0;
    if (!is_scalar(kind))
        return 0;
    if (kind == &PyLong_Type) {
        Py_ssize_t digits = Py_SIZE(value);
        if (digits >= -1 && digits <= 1)
            integer = digits * (long long)((PyLongObject *)value)->ob_digit[0] * (digits != 0);
        else
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
    if (tag == 0) {
        made = PyObject_CallMethod(s->format, "scalar", "O", value);
        if (made == NULL || made == Py_None) {
            Py_XDECREF(made);
            return made ? 0 : -1;
        }
    }
    if (more(b, before + size + 24 + (made ? PyBytes_GET_SIZE(made) : 0)) < 0) {
        Py_XDECREF(made);
        return -1;
    }
    if (head)
        raw(b, PyBytes_AS_STRING(head), before);
    if (made) {
        raw(b, PyBytes_AS_STRING(made), PyBytes_GET_SIZE(made));
        Py_DECREF(made);
        return 1;
    }
    if (tag == 'f') {
        floating(b, PyFloat_AS_DOUBLE(value));
        return 1;
    }
    byte(b, tag);
    if (tag == 'i')
        zigzag(b, integer);
    else if (data) {
        number(b, (unsigned long long)size);
        raw(b, data, size);
    }
    return 1;
}
