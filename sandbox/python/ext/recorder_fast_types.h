/* The classes Frame and Entry, for the Python side, which reads them. */

static PyObject *entry_children(PyObject *self, void *none)
{
    Entry *e = (Entry *)self;
    PyObject *out = PyTuple_New(e->childs);
    for (Py_ssize_t i = 0; out != NULL && i < e->childs; i++)
        PyTuple_SET_ITEM(out, i, Py_NewRef(e->children[i]));
    return out;
}

static PyObject *entry_body(PyObject *self, void *none) { return PyBytes_FromStringAndSize((char *)((Entry *)self)->body, ((Entry *)self)->bodies); }

static PyObject *entry_reader(PyObject *self, void *none) { return Py_NewRef(((Entry *)self)->shape->reader); }

/* Only ever of an Entry that nothing holds: those of a cycle give it up when they are settled. */
static void entry_dealloc(PyObject *self)
{
    Entry *e = (Entry *)self;
    forget_children(e);
    forget_token(e);
    PyMem_Free(e->body);
    PyObject_Free(self);
}

static PyMemberDef entry_members[] = {
    {"number", T_LONGLONG, offsetof(Entry, number), READONLY, NULL},
    {"serial", T_LONGLONG, offsetof(Entry, serial), READONLY, NULL},
    {"version", T_LONGLONG, offsetof(Entry, version), READONLY, NULL},
    {NULL},
};

static PyGetSetDef entry_getters[] = {
    {"children", entry_children, NULL, NULL, NULL},
    {"body", entry_body, NULL, NULL, NULL},
    {"reader", entry_reader, NULL, NULL, NULL},
    {NULL},
};

static PyTypeObject EntryType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "recorder_fast.Entry",
    .tp_basicsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "One object as it was recorded last.",
    .tp_dealloc = entry_dealloc,
    .tp_members = entry_members,
    .tp_getset = entry_getters,
};

static PyObject *frame_seen(PyObject *self, void *none)
{
    Frame *known = (Frame *)self;
    if (known->seen != NULL)
        return Py_NewRef(known->seen);
    PyObject *out = PyDict_New();
    for (int i = 0; out != NULL && i < known->slots; i++)
        if (known->last[i] != NULL && PyDict_SetItem(out, PyTuple_GET_ITEM(known->code->code->co_localsplusnames, i), known->last[i]) < 0)
            Py_CLEAR(out);
    return out;
}

static PyObject *frame_code(PyObject *self, void *none) { return Py_NewRef(((Frame *)self)->code->known); }

static void frame_dealloc(PyObject *self)
{
    Frame *known = (Frame *)self;
    for (int i = 0; known->last != NULL && i < known->slots; i++)
        Py_XDECREF(known->last[i]);
    PyMem_Free(known->last);
    Py_XDECREF(known->seen);
    Py_XDECREF(known->failure);
    PyObject_Free(self);
}

static PyMemberDef frame_members[] = {
    {"number", T_LONGLONG, offsetof(Frame, number), READONLY, NULL},
    {"lane", T_LONGLONG, offsetof(Frame, lane), READONLY, NULL},
    {"parent", T_LONGLONG, offsetof(Frame, parent), READONLY, NULL},
    {"line", T_LONGLONG, offsetof(Frame, line), READONLY, NULL},
    {"suspended", T_BOOL, offsetof(Frame, suspended), READONLY, NULL},
    {"failure", T_OBJECT, offsetof(Frame, failure), 0, NULL},
    {NULL},
};

static PyGetSetDef frame_getters[] = {
    {"seen", frame_seen, NULL, NULL, NULL},
    {"code", frame_code, NULL, NULL, NULL},
    {NULL},
};

static PyTypeObject FrameType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "recorder_fast.Frame",
    .tp_basicsize = sizeof(Frame),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A frame that runs or is suspended, as it was recorded last.",
    .tp_dealloc = frame_dealloc,
    .tp_members = frame_members,
    .tp_getset = frame_getters,
};
