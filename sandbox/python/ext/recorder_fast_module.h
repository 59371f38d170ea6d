/* The classes State, Frame and Entry, and the module, as Python sees them. */

static PyObject *attach(PyObject *self, PyObject *none)
{
    PyEval_SetTrace(trace, self);
    begin_evaluating();
    Py_RETURN_NONE;
}

static PyObject *detach(PyObject *self, PyObject *none)
{
    end_evaluating();
    PyEval_SetTrace(NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *attached(PyObject *self, PyObject *none)
{
    PyThreadState *t = PyThreadState_Get();
    return PyBool_FromLong(t->c_tracefunc == trace && t->c_traceobj == self && !evaluator_lost());
}

static PyObject *lock(PyObject *self, PyObject *none)
{
    acquire((State *)self);
    Py_RETURN_NONE;
}

static PyObject *unlock(PyObject *self, PyObject *error)
{
    release((State *)self);
    Py_RETURN_NONE;
}

static PyObject *next_tick(PyObject *self, PyObject *none)
{
    ((State *)self)->tick++;
    Py_RETURN_NONE;
}

static PyObject *drain_all(PyObject *self, PyObject *none) { return drain((State *)self) < 0 ? NULL : Py_NewRef(Py_None); }

static PyObject *flush_all(PyObject *self, PyObject *none) { return flush((State *)self) < 0 ? NULL : Py_NewRef(Py_None); }

static PyObject *sent(PyObject *self, PyObject *none) { return PyLong_FromUnsignedLongLong(((State *)self)->written); }

static PyObject *set_name(PyObject *self, PyObject *args)
{
    PyObject *seen, *name, *old, *value;
    int record;
    if (!PyArg_ParseTuple(args, "iO!OOO", &record, &PyDict_Type, &seen, &name, &old, &value) || set_in((State *)self, record, seen, name, value, NULL) < 0)
        return NULL;
    return drain_all(self, NULL);
}

static PyObject *delete_name(PyObject *self, PyObject *args)
{
    PyObject *seen, *name;
    int record;
    if (!PyArg_ParseTuple(args, "iO!O", &record, &PyDict_Type, &seen, &name) || delete_in((State *)self, record, seen, name) < 0)
        return NULL;
    return drain_all(self, NULL);
}

/* The frames that run or are suspended, each with what is known of it. */
static PyObject *live(PyObject *self, PyObject *none)
{
    Map *m = &((State *)self)->frames;
    PyObject *out = PyList_New(0);
    for (size_t i = 0; out != NULL && i < m->size; i++)
        if (m->values[i] != NULL) {
            PyObject *pair = PyTuple_Pack(2, m->keys[i], m->values[i]);
            if (pair == NULL || PyList_Append(out, pair) < 0)
                Py_CLEAR(out);
            Py_XDECREF(pair);
        }
    return out;
}

static void clear_frames(State *s)
{
    Map m = s->frames;
    memset(&s->frames, 0, sizeof s->frames);
    s->last_frame = NULL;
    s->last_known = NULL;
    for (size_t i = 0; i < m.size; i++)
        if (m.values[i] != NULL) {
            Py_DECREF((PyObject *)m.values[i]);
            Py_DECREF((PyObject *)m.keys[i]);
        }
    empty(&m);
}

static PyObject *abandon(PyObject *self, PyObject *none)
{
    clear_frames((State *)self);
    Py_RETURN_NONE;
}

/* Where the variable is that a slot of a frame has. */
static PyObject **slot(PyFrameObject *frame, int i)
{
    PyCodeObject *co = frame->f_frame->f_code;
    PyObject **at = &frame->f_frame->localsplus[i];
    if (PyBytes_AS_STRING(co->co_localspluskinds)[i] & (CO_FAST_CELL | CO_FAST_FREE) && *at != NULL && PyCell_Check(*at))
        at = &((PyCellObject *)*at)->ob_ref;
    return at;
}

/* _locals(frame): its variables in a dict of their own, whose change changes nothing. */
static PyObject *frame_locals(PyObject *self, PyObject *frame)
{
    if (!PyFrame_Check(frame))
        return PyErr_Format(PyExc_TypeError, "a frame");
    PyCodeObject *co = ((PyFrameObject *)frame)->f_frame->f_code;
    if (!(co->co_flags & CO_OPTIMIZED))
        return PyObject_GetAttrString(frame, "f_locals");
    PyObject *out = PyDict_New();
    for (int i = 0; out != NULL && i < co->co_nlocalsplus; i++) {
        PyObject *value = *slot((PyFrameObject *)frame, i);
        if (value != NULL && PyDict_SetItem(out, PyTuple_GET_ITEM(co->co_localsplusnames, i), value) < 0)
            Py_CLEAR(out);
    }
    return out;
}

/* _assign(frame, name, value): whether the frame has such a variable, which is value now. */
static PyObject *assign(PyObject *self, PyObject *args)
{
    PyObject *frame, *name, *value;
    if (!PyArg_ParseTuple(args, "O!UO", &PyFrame_Type, &frame, &name, &value))
        return NULL;
    PyCodeObject *co = ((PyFrameObject *)frame)->f_frame->f_code;
    for (int i = 0; i < co->co_nlocalsplus; i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(co->co_localsplusnames, i), name) == 0) {
            PyObject **at = slot((PyFrameObject *)frame, i), *before = *at;
            *at = Py_NewRef(value);
            Py_XDECREF(before);
            Py_RETURN_TRUE;
        }
    Py_RETURN_FALSE;
}

/* _open(memory): where the records are handed over. */
static PyObject *open_ring(PyObject *self, PyObject *memory)
{
    State *s = (State *)self;
    if (PyObject_GetBuffer(memory, &s->ring, PyBUF_WRITABLE) < 0)
        return NULL;
    if (s->ring.len < RING_HEAD + RING_SIZE)
        return PyErr_Format(PyExc_ValueError, "a ring of %zd bytes", s->ring.len);
    s->room = RING_SIZE;
    Py_RETURN_NONE;
}

static PyObject *close_ring(PyObject *self, PyObject *none)
{
    PyBuffer_Release(&((State *)self)->ring);
    ((State *)self)->room = 0;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"attach", attach, METH_NOARGS, "Traces this thread."},
    {"detach", detach, METH_NOARGS, "Ends it."},
    {"attached", attached, METH_NOARGS, "Whether this thread is traced."},
    {"__enter__", lock, METH_NOARGS, "Keeps the hooks of other threads out."},
    {"__exit__", unlock, METH_VARARGS, "Lets them in."},
    {"_next", next_tick, METH_NOARGS, "Another event begins."},
    {"_drain", drain_all, METH_NOARGS, "Puts what is pending where Python writes."},
    {"_flush", flush_all, METH_NOARGS, "Hands over all that was written."},
    {"_sent", sent, METH_NOARGS, "How many bytes were handed over."},
    {"_set", set_name, METH_VARARGS, "recorder.Recorder._set"},
    {"_delete", delete_name, METH_VARARGS, "recorder.Recorder._delete"},
    {"_live", live, METH_NOARGS, "recorder.Recorder._live"},
    {"_abandon", abandon, METH_NOARGS, "recorder.Recorder._abandon"},
    {"_locals", frame_locals, METH_O, "A frame's variables, in a dict of their own."},
    {"_assign", assign, METH_VARARGS, "Sets a frame's variable; False where it has none of that name."},
    {"_open", open_ring, METH_O, "Begins to use the ring's memory."},
    {"_close", close_ring, METH_NOARGS, "Ends it."},
    {NULL},
};

#define OBJECT_OF(name, field) {name, T_OBJECT_EX, offsetof(State, field), 0, NULL}

static PyMemberDef members[] = {
    {"count", T_LONGLONG, offsetof(State, count), 0, NULL},
    {"_current", T_LONGLONG, offsetof(State, current), 0, NULL},
    {"_most_objects", T_LONGLONG, offsetof(State, most_objects), 0, NULL},
    {"mark", T_LONGLONG, offsetof(State, mark), 0, NULL},
    {"over", T_BOOL, offsetof(State, over), 0, NULL},
    {"kept", T_BOOL, offsetof(State, kept), 0, NULL},
    {"_whole", T_BOOL, offsetof(State, whole), 0, NULL},
    {"_few", T_PYSSIZET, offsetof(State, few), 0, NULL},
    {"_every", T_PYSSIZET, offsetof(State, every), 0, NULL},
    OBJECT_OF("_filename", filename),
    OBJECT_OF("_channel", channel),
    OBJECT_OF("_seen", seen),
    OBJECT_OF("_names", names),
    OBJECT_OF("_given", given),
    OBJECT_OF("_watched", watched),
    OBJECT_OF("_set_heads", set_heads),
    OBJECT_OF("_global_heads", global_heads),
    OBJECT_OF("_out", out),
    OBJECT_OF("_wait", wait),
    OBJECT_OF("control", control),
    OBJECT_OF("_task_step", task_step),
    OBJECT_OF("_objects", objects),
    OBJECT_OF("_format", format),
    {NULL},
};

#define EACH(do)                                                                                                    \
    do(filename) do(alias) do(channel) do(seen) do(names) do(given) do(watched) do(set_heads) do(global_heads)     \
    do(out) do(wait) do(control) do(task_step) do(objects) do(format)

static PyObject *new_state(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    State *s = (State *)type->tp_alloc(type, 0);
    if (s != NULL && (s->wake = PyThread_allocate_lock()) == NULL)
        Py_CLEAR(s);
    else if (s != NULL)
        PyThread_acquire_lock(s->wake, NOWAIT_LOCK);
    return (PyObject *)s;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    State *s = (State *)self;
#define VISIT(field) Py_VISIT(s->field);
    EACH(VISIT)
    return 0;
}

static int clear(PyObject *self)
{
    State *s = (State *)self;
#define CLEAR(field) Py_CLEAR(s->field);
    EACH(CLEAR)
    clear_frames(s);
    return 0;
}

static void dealloc(PyObject *self)
{
    State *s = (State *)self;
    PyObject_GC_UnTrack(self);
    clear(self);
    PyBuffer_Release(&s->ring);
    while (s->unheld_used > 0)
        Py_DECREF(s->unheld[--s->unheld_used]);
    PyMem_Free(s->unheld);
    PyMem_Free(s->free);
    for (size_t i = 0; i < s->table.size; i++)
        if (s->table.values[i] != NULL)
            forget_children(s->table.values[i]); /* which may be a cycle */
    for (size_t i = 0; i < s->table.size; i++)
        Py_XDECREF((PyObject *)s->table.values[i]);
    for (size_t i = 0; i < s->codes.size; i++)
        if (s->codes.values[i] != NULL) {
            Code *code = s->codes.values[i];
            Py_XDECREF(code->known);
            Py_XDECREF(code->number);
            Py_XDECREF(code->reads);
            Py_XDECREF(code->named);
            Py_XDECREF(code->code);
            PyMem_Free(code->heads);
            PyMem_Free(code);
        }
    for (size_t i = 0; i < s->shapes.size; i++)
        if (s->shapes.values[i] != NULL) {
            Shape *shape = s->shapes.values[i];
            Py_XDECREF(shape->reader);
            Py_XDECREF(shape->name);
            Py_XDECREF(shape->peek);
            Py_XDECREF(shape->members);
            Py_XDECREF(shape->kind);
            PyMem_Free(shape);
        }
    empty(&s->table);
    empty(&s->codes);
    empty(&s->shapes);
    PyMem_Free(s->pending.at);
    if (s->wake != NULL) {
        PyThread_release_lock(s->wake);
        PyThread_free_lock(s->wake);
    }
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject StateType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "recorder_fast.State",
    .tp_basicsize = sizeof(State),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The part of a recorder that is in C.",
    .tp_new = new_state,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_members = members,
    .tp_methods = methods,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "recorder_fast", "The recorder's fast path.", -1, NULL};

PyMODINIT_FUNC PyInit_recorder_fast(void)
{
    if (PyType_Ready(&StateType) < 0 || PyType_Ready(&FrameType) < 0 || PyType_Ready(&EntryType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddObjectRef(module, "State", (PyObject *)&StateType) < 0 || PyModule_AddObjectRef(module, "Entry", (PyObject *)&EntryType) < 0 ||
        PyModule_AddIntConstant(module, "FORM", FORM) < 0)
        return NULL;
    return module;
}
