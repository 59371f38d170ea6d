/* Frames, and what can be read in them. */

/* What is known of a code object; Python finds it out, once. */
static Code *code_of(State *s, PyCodeObject *co)
{
    Code *code = find(&s->codes, co);
    if (code != NULL)
        return code;
    s->called = 1;
    PyObject *known = drain(s) < 0 ? NULL : PyObject_CallMethod((PyObject *)s, "_code", "O", co);
    if (known == NULL || (code = PyMem_Calloc(1, sizeof *code)) == NULL)
        return NULL;
    PyObject *module = PyObject_GetAttrString(known, "module"), *task = PyObject_GetAttrString(known, "task");
    code->known = known;
    code->number = PyObject_GetAttrString(known, "number");
    code->reads = PyObject_GetAttrString(known, "reads");
    code->named = PyObject_GetAttrString(known, "named");
    code->heads = PyMem_Calloc(co->co_nlocalsplus + 1, sizeof *code->heads);
    code->module = module == Py_True;
    code->task = task == Py_True;
    code->optimised = co->co_flags & CO_OPTIMIZED;
    code->first = co->co_firstlineno;
    code->code = (PyCodeObject *)Py_NewRef(co);
    Py_XDECREF(module);
    Py_XDECREF(task);
    if (PyErr_Occurred() || code->heads == NULL || put(&s->codes, co, code) < 0)
        return NULL;
    return code;
}

/* The user's frame that this one was called from: recorder.Recorder._caller. */
static Frame *caller(State *s, PyFrameObject *frame, Code *code)
{
    _PyInterpreterFrame *back = frame->f_frame->previous;
    for (; back != NULL; back = back->previous) {
        if (code->task && (PyObject *)back->f_code == s->task_step)
            return NULL;
        if (back->frame_obj != NULL) {
            Frame *known = find(&s->frames, back->frame_obj);
            if (known != NULL)
                return known;
        }
    }
    return NULL;
}

static int at(State *s, Frame *known)
{
    if (s->current == known->number)
        return 0;
    s->current = known->number;
    if (more(&s->pending, 16) < 0)
        return -1;
    byte(&s->pending, FRAME);
    number(&s->pending, known->number);
    return 0;
}

static Frame *push(State *s, PyFrameObject *frame)
{
    if (settle(s) < 0) /* ahead of new objects in old places */
        return NULL;
    Code *code = code_of(s, frame->f_frame->f_code);
    Frame *known = code ? PyObject_New(Frame, &FrameType) : NULL;
    if (known == NULL)
        return NULL;
    memset((char *)known + sizeof(PyObject), 0, sizeof *known - sizeof(PyObject));
    known->code = code;
    known->slots = code->code->co_nlocalsplus;
    Frame *parent = caller(s, frame, code);
    known->number = ++s->pushed;
    known->line = code->first;
    known->depth = parent ? parent->depth + 1 : 1;
    known->last = PyMem_Calloc(known->slots + 1, sizeof *known->last);
    if (!code->optimised)
        known->seen = PyDict_New();
    if (parent) {
        known->parent = parent->number;
        known->lane = parent->lane;
    } else {
        s->called = 1;
        PyObject *lane = drain(s) < 0 ? NULL : PyObject_CallMethod((PyObject *)s, "_lane", "OO", frame, code->known);
        known->lane = lane ? PyLong_AsLongLong(lane) : -1;
        Py_XDECREF(lane);
    }
    if (known->lane < 0 || known->last == NULL || put(&s->frames, frame, known) < 0 || more(&s->pending, 64) < 0) {
        Py_DECREF(known);
        return NULL;
    }
    Py_INCREF(frame);
    Bytes *b = &s->pending;
    byte(b, PUSH);
    number(b, s->kept ? known->number : 0);
    append(b, code->number);
    if (more(b, 32) < 0)
        return NULL;
    number(b, known->lane);
    number(b, known->parent);
    byte(b, 0);
    s->current = known->number;
    if (!code->optimised && !code->module) { /* whose names a class may have prepared */
        PyObject *done = drain(s) < 0 ? NULL : PyObject_CallMethod((PyObject *)s, "_tell_unread", "O", code->known);
        Py_XDECREF(done);
        if (done == NULL)
            return NULL;
    }
    return known;
}

/* The frame's own; pushed where it is new, or resumed. */
static Frame *enter(State *s, PyFrameObject *frame)
{
    Frame *known = frame == s->last_frame ? s->last_known : find(&s->frames, frame);
    if (known == NULL && (known = push(s, frame)) == NULL)
        return NULL;
    s->last_frame = frame;
    s->last_known = known;
    if (known->suspended) {
        Frame *parent = caller(s, frame, known->code);
        known->suspended = 0;
        known->parent = parent ? parent->number : 0;
        if (more(&s->pending, 32) < 0)
            return NULL;
        byte(&s->pending, RESUMED);
        number(&s->pending, known->number);
        number(&s->pending, known->parent);
        s->current = known->number;
    }
    return known;
}

/* The frame's own variables, from its slots. */
static int locals(State *s, PyFrameObject *frame, Frame *known)
{
    PyCodeObject *co = known->code->code;
    const unsigned char *kinds = (const unsigned char *)PyBytes_AS_STRING(co->co_localspluskinds);
    for (int i = 0; i < known->slots; i++) {
        PyObject *value = frame->f_frame->localsplus[i], *old = known->last[i], *fresh = NULL;
        if (kinds[i] & (CO_FAST_CELL | CO_FAST_FREE) && value != NULL && PyCell_Check(value))
            value = PyCell_GET(value);
        if (value == old) /* a scalar that is held, or nothing still */
            continue;
        PyObject *name = PyTuple_GET_ITEM(co->co_localsplusnames, i), *head = known->code->heads[i];
        if (head == NULL) {
            if (hidden(SET, name))
                continue;
            if ((head = head_of(s, SET, name)) == NULL)
                return -1;
            known->code->heads[i] = head;
        }
        if (value == NULL) {
            known->last[i] = NULL;
            int failed = write_name(s, DELETE, name) < 0 || (IS_ENTRY(old) && drop(s, (Entry *)old) < 0);
            Py_DECREF(old);
            if (failed)
                return -1;
            continue;
        }
        Py_INCREF(value); /* while Python of ours may run */
        int got = variable(s, SET, head, old, value, &fresh);
        if (got > 0) {
            known->last[i] = fresh;
            Py_XDECREF(old);
        }
        Py_DECREF(value);
        if (got < 0)
            return -1;
    }
    return 0;
}

/* Records what has changed in what the frame can reach. */
static int read_frame(State *s, PyFrameObject *frame, Frame *known)
{
    Code *code = known->code;
    s->tick++;
    if (code->module && !s->whole) {
        if (PyTuple_GET_SIZE(s->watched) <= s->few || s->count % s->every == 0)
            return namespace(s, s->watched);
        PyObject *line = PyLong_FromLongLong(known->line), *named = line ? PyDict_GetItemWithError(code->named, line) : NULL;
        Py_XDECREF(line);
        return named == NULL ? (PyErr_Occurred() ? -1 : 0) : namespace(s, named);
    }
    if (code->optimised)
        return locals(s, frame, known) < 0 ? -1 : namespace(s, code->reads);
    s->called = 1;
    PyObject *done = drain(s) < 0 ? NULL : PyObject_CallMethod((PyObject *)s, "_read", "OO", frame, known);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Forgets what was recorded of a frame's variables. */
static int forget(State *s, Frame *known)
{
    int failed = 0;
    for (int i = 0; i < known->slots; i++)
        if (known->last[i] != NULL && IS_ENTRY(known->last[i]))
            failed = drop(s, (Entry *)known->last[i]) < 0 || failed;
    if (known->seen != NULL) {
        PyObject *name, *old;
        Py_ssize_t i = 0;
        while (PyDict_Next(known->seen, &i, &name, &old))
            if (IS_ENTRY(old))
                failed = drop(s, (Entry *)old) < 0 || failed;
    }
    return failed ? -1 : 0;
}

/* A frame returns (value), is suspended (value) or is left by an exception (NULL). */
static int leave(State *s, PyFrameObject *frame, Frame *known, int record, PyObject *value)
{
    Entry *held = NULL;
    Bytes *b = &s->pending;
    if (at(s, known) < 0 || (value != NULL && read_frame(s, frame, known) < 0))
        return -1;
    if (value == NULL) {
        PyObject *failure = known->failure;
        if (failure == NULL || more(b, 1 + PyBytes_GET_SIZE(failure)) < 0)
            return -1;
        byte(b, record);
        append(b, failure);
    } else {
        PyObject *head = PyBytes_FromStringAndSize(NULL, 1);
        if (head == NULL)
            return -1;
        PyBytes_AS_STRING(head)[0] = (char)record;
        int written = scalar(s, b, head, value);
        Py_DECREF(head);
        if (written == 0) {
            if ((held = object(s, value, 0)) == NULL || more(b, 24) < 0)
                return -1;
            byte(b, record);
            byte(b, '@');
            number(b, held->number);
        } else if (written < 0)
            return -1;
    }
    if (record == SUSPEND) {
        known->suspended = 1;
        s->current = known->parent;
        known->parent = 0;
    } else {
        s->current = known->parent;
        if (s->last_frame == frame) {
            s->last_frame = NULL;
            s->last_known = NULL;
        }
        take_out(&s->frames, frame);
        int failed = forget(s, known) < 0;
        Py_DECREF(known);
        Py_DECREF(frame);
        if (failed)
            return -1;
    }
    return held != NULL && held->held <= 0 ? unheld(s, held) : 0;
}
