/* New and changed objects, and variables, as records. */

static Entry *object(State *s, PyObject *v, int depth);

/* Keeps what a sample was, to be compared with. */
static int keep(PyObject *v, Entry *e, Sample *p)
{
    forget_token(e);
    e->length = p->length;
    if (p->list != NULL && (e->shape->how == ARRAY || e->shape->how == OTHER)) {
        Py_INCREF(p->list);
        e->made = p->list;
        if (e->shape->how == ARRAY && (e->dtype = PyObject_GetAttrString(v, "dtype")) == NULL)
            PyErr_Clear();
        return 0;
    }
    if (p->used == 0)
        return 0;
    e->token = PyMem_Malloc(p->used * sizeof *e->token);
    if (e->token == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < p->used; i++) {
        int scalar = is_scalar(Py_TYPE(p->items[i]));
        if (scalar)
            Py_INCREF(p->items[i]);
        e->token[i] = (uintptr_t)p->items[i] | scalar;
    }
    e->tokens = p->used;
    return 0;
}

/* Appends the values, and gathers the objects among them, whose records come first. */
static int contents(State *s, Entry *e, Bytes *body, PyObject **shown, Py_ssize_t count, Entry **children, Py_ssize_t *childs)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        int written = scalar(s, body, NULL, shown[i]);
        if (written < 0)
            return -1;
        if (written > 0)
            continue;
        Entry *child = object(s, shown[i], e->depth + 1);
        if (child == NULL || more(body, 16) < 0)
            return -1;
        byte(body, '@');
        number(body, child->number);
        child->held++;
        Py_INCREF(child);
        children[(*childs)++] = child;
    }
    return 0;
}

/* Reads an object, and records it as new or changed; again: it is only looked at deeper. */
static int look(State *s, PyObject *v, Entry *e, int again)
{
    Sample p = {.length = -1};
    PyObject *own[2 * SHOWN + 1], **shown = own, *list = NULL;
    Entry *few[2 * SHOWN], **children = few;
    Py_ssize_t count = 0, childs = 0;
    int exactness = UNREAD, form = OPAQUE, failed = 0, held = 0;
    own[0] = NULL;
    if (e->shape->how != NOTHING && e->depth < DEPTH) {
        if (peek(s, v, e, &p) == 0)
            exactness = EXACT;
        else if (PyErr_ExceptionMatches(PyExc_Exception)) {
            PyErr_Clear();
            let_go(&p, 0);
            p.used = 0;
            p.length = -1;
        } else
            return -1;
    }
    hold(&p);
    held = 1;
    Bytes body = {NULL};
    failed = keep(v, e, &p);
    if (!failed && exactness == EXACT) {
        exactness = shown_of(s, v, e, &p, own, &list);
        failed = exactness < 0;
        form = e->shape->form;
    }
    if (list != NULL) {
        shown = ((PyListObject *)list)->ob_item;
        count = PyList_GET_SIZE(list);
    } else
        while (shown[count] != NULL)
            count++;
    if (count > 2 * SHOWN && !failed)
        failed = (children = PyMem_Malloc(count * sizeof *children)) == NULL;
    if (!failed && more(&body, 40) == 0) {
        number(&body, exactness);
        number(&body, p.length + 1);
        number(&body, form);
        number(&body, count);
        failed = contents(s, e, &body, shown, count, children, &childs) < 0;
    } else
        failed = 1;
    Entry **before = e->children;
    Py_ssize_t befores = e->childs;
    e->children = NULL;
    if (childs > 0 && (e->children = PyMem_Malloc(childs * sizeof *children)) != NULL)
        memcpy(e->children, children, childs * sizeof *children);
    e->childs = e->children ? childs : 0;
    for (Py_ssize_t i = 0; i < befores; i++) {
        failed = drop(s, before[i]) < 0 || failed;
        Py_DECREF(before[i]);
    }
    PyMem_Free(before);
    if (children != few)
        PyMem_Free(children);
    Py_XDECREF(list);
    let_go(&p, held);
    int equal = body.used == e->bodies && memcmp(body.at, e->body, body.used) == 0; /* equal scalars in the place of others */
    if (failed || (equal && (again || exactness == EXACT)) || more(&s->pending, 48 + body.used) < 0 || append(&s->pending, e->shape->name) < 0) {
        PyMem_Free(body.at);
        if (failed && !PyErr_Occurred())
            PyErr_NoMemory();
        return PyErr_Occurred() ? -1 : 0;
    }
    s->pending.used -= PyBytes_GET_SIZE(e->shape->name);
    PyMem_Free(e->body);
    e->body = body.at;
    e->bodies = body.used;
    e->version += !again;
    int fresh = !again && e->version == 1;
    byte(&s->pending, fresh ? OBJECT : MUTATE);
    number(&s->pending, e->number);
    if (fresh)
        raw(&s->pending, PyBytes_AS_STRING(e->shape->name), PyBytes_GET_SIZE(e->shape->name));
    number(&s->pending, fresh || again ? e->version : 0);
    raw(&s->pending, body.at, body.used);
    return 0;
}

/* The entry of an object, which the table holds; recorded as far as it is new or has changed. */
static Entry *object(State *s, PyObject *v, int depth)
{
    Entry *e = find(&s->table, v);
    if (e != NULL && e->shape->kind == Py_TYPE(v)) {
        int failed;
        if (depth < e->depth && e->shape->how != NOTHING) {
            e->depth = depth;
            failed = look(s, v, e, 1);
        } else
            failed = check(s, v, e, depth);
        return failed < 0 ? NULL : e;
    }
    if (s->numbers - s->free_used >= s->most_objects) {
        Py_XDECREF(PyObject_CallMethod(s->objects, "full", NULL)); /* raises */
        return NULL;
    }
    Shape *shape = shape_of(s, Py_TYPE(v));
    Entry *fresh = shape ? PyObject_New(Entry, &EntryType) : NULL;
    if (fresh == NULL)
        return NULL;
    memset((char *)fresh + sizeof(PyObject), 0, sizeof *fresh - sizeof(PyObject));
    fresh->serial = ++s->objects_count;
    fresh->number = s->free_used > 0 ? s->free[--s->free_used] : ++s->numbers;
    fresh->address = v;
    fresh->shape = shape;
    fresh->depth = depth;
    fresh->seen = s->tick;
    fresh->length = -1;
    if (put(&s->table, v, fresh) < 0) {
        Py_DECREF(fresh);
        return NULL;
    }
    Py_XDECREF(e); /* one of another class, in the same place */
    return look(s, v, fresh, 0) < 0 ? NULL : fresh;
}

/* How a record that sets a name begins. */
static PyObject *head_of(State *s, int record, PyObject *name)
{
    PyObject *heads = record == SET ? s->set_heads : s->global_heads, *head = PyDict_GetItemWithError(heads, name);
    if (head == NULL && !PyErr_Occurred() && drain(s) == 0) {
        head = PyObject_CallMethod((PyObject *)s, "_head", "iO", record, name);
        s->called = 1;
        Py_XDECREF(head); /* heads has it */
    }
    return head;
}

/* Whether a variable is left out by its name. */
static int hidden(int record, PyObject *name)
{
    Py_ssize_t size = PyUnicode_GET_LENGTH(name);
    Py_UCS4 first = size > 0 ? PyUnicode_READ_CHAR(name, 0) : 0;
    if (first == '.')
        return 1;
    if (first != '_' || size < 2 || PyUnicode_READ_CHAR(name, 1) != '_')
        return 0;
    return record == SET || PyUnicode_CompareWithASCIIString(name, "__result__") != 0;
}

/* Whether what was recorded last of a variable is this object. */
static inline int holds(PyObject *old, PyObject *value)
{
    Entry *e = (Entry *)old;
    return IS_ENTRY(old) && e->address == value && e->shape->kind == Py_TYPE(value) && e->version > 0;
}

/* Whether two integers or two texts are: others are told again. */
static int equal(PyTypeObject *kind, PyObject *a, PyObject *b)
{
    if (kind == &PyLong_Type)
        return Py_SIZE(a) == Py_SIZE(b) &&
               memcmp(((PyLongObject *)a)->ob_digit, ((PyLongObject *)b)->ob_digit, Py_ABS(Py_SIZE(a)) * sizeof(digit)) == 0;
    return kind == &PyUnicode_Type && PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_Compare(a, b) == 0;
}

/* Records that a variable is value, where that is new. old is what was recorded last, a
 * scalar, an Entry or NULL; returns 1 with a new reference in fresh where it is another now. */
static int variable(State *s, int record, PyObject *head, PyObject *old, PyObject *value, PyObject **fresh)
{
    PyTypeObject *kind = Py_TYPE(value);
    if (old != NULL && holds(old, value))
        return check(s, value, (Entry *)old, 0);
    *fresh = value;
    if (old != NULL && Py_TYPE(old) == kind && equal(kind, old, value)) {
        Py_INCREF(value);
        return 1;
    }
    int written = scalar(s, &s->pending, head, value);
    if (written == 0) {
        Entry *now = object(s, value, 0);
        if (now == NULL || more(&s->pending, 24 + PyBytes_GET_SIZE(head)) < 0)
            return -1;
        append(&s->pending, head);
        byte(&s->pending, '@');
        number(&s->pending, now->number);
        now->held++;
        *fresh = (PyObject *)now;
    } else if (written < 0)
        return -1;
    Py_INCREF(*fresh);
    return old != NULL && IS_ENTRY(old) && drop(s, (Entry *)old) < 0 ? -1 : 1;
}

/* recorder.Recorder._set on a dict. given is what is left out, or NULL. */
static int set_in(State *s, int record, PyObject *seen, PyObject *name, PyObject *value, PyObject *given)
{
    PyObject *old = PyDict_GetItemWithError(seen, name), *fresh, *head;
    if (old == value)
        return 0;
    if (old != NULL && holds(old, value)) {
        Py_INCREF(value); /* while Python of ours may run */
        int failed = check(s, value, (Entry *)old, 0);
        Py_DECREF(value);
        return failed;
    }
    if (hidden(record, name) || (given != NULL && PyDict_GetItemWithError(given, name) == value))
        return 0;
    if ((head = head_of(s, record, name)) == NULL)
        return -1;
    Py_INCREF(value);
    Py_XINCREF(old);
    int got = variable(s, record, head, old, value, &fresh);
    if (got > 0) {
        got = PyDict_SetItem(seen, name, fresh);
        Py_DECREF(fresh);
    }
    Py_DECREF(value);
    Py_XDECREF(old);
    return got;
}

static int write_name(State *s, int record, PyObject *name)
{
    PyObject *head = head_of(s, SET, name); /* its name is behind the first byte */
    if (head == NULL || more(&s->pending, PyBytes_GET_SIZE(head)) < 0)
        return -1;
    byte(&s->pending, record);
    raw(&s->pending, PyBytes_AS_STRING(head) + 1, PyBytes_GET_SIZE(head) - 1);
    return 0;
}

/* recorder.Recorder._delete on a dict. */
static int delete_in(State *s, int record, PyObject *seen, PyObject *name)
{
    PyObject *old = PyDict_GetItemWithError(seen, name);
    if (old == NULL)
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(old);
    int failed = PyDict_DelItem(seen, name) < 0 || write_name(s, record, name) < 0 || (IS_ENTRY(old) && drop(s, (Entry *)old) < 0);
    Py_DECREF(old);
    return failed ? -1 : 0;
}

/* Names of the namespace. */
static int namespace(State *s, PyObject *which)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(which); i++) {
        PyObject *name = PyTuple_GET_ITEM(which, i), *value = PyDict_GetItemWithError(s->names, name);
        if ((value == NULL ? delete_in(s, FORGET, s->seen, name) : set_in(s, GLOBAL, s->seen, name, value, s->given)) < 0)
            return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}
