/* The class State and the module, as Python sees them. */

#define OBJECT(name, field) {name, T_OBJECT_EX, offsetof(State, field), 0, NULL}

static PyMemberDef members[] = {
    {"count", T_LONGLONG, offsetof(State, count), 0, NULL},
    {"_current", T_LONGLONG, offsetof(State, current), 0, NULL},
    {"_mark", T_LONGLONG, offsetof(State, mark), 0, NULL},
    {"over", T_BOOL, offsetof(State, over), 0, NULL},
    {"_whole", T_BOOL, offsetof(State, whole), 0, NULL},
    {"_few", T_PYSSIZET, offsetof(State, few), 0, NULL},
    {"_every", T_PYSSIZET, offsetof(State, every), 0, NULL},
    {"_flush_at", T_PYSSIZET, offsetof(State, flush), 0, NULL},
    OBJECT("_filename", filename),
    OBJECT("_frames", frames),
    OBJECT("_seen", seen),
    OBJECT("_names", names),
    OBJECT("_given", given),
    OBJECT("_watched", watched),
    OBJECT("_set_heads", set_heads),
    OBJECT("_global_heads", global_heads),
    OBJECT("_writer", writer),
    OBJECT("_out", out),
    OBJECT("_objects", objects),
    OBJECT("_unheld", unheld),
    OBJECT("_lock", lock),
    {NULL},
};

static PyMethodDef methods[] = {
    {"attach", attach, METH_NOARGS, "Traces this thread."},
    {"detach", detach, METH_NOARGS, "Ends it."},
    {"attached", attached, METH_NOARGS, "Whether this thread is traced."},
    {"read", read_frame, METH_VARARGS, "Records what a frame can reach; False where it is left to Python."},
    {"slots", slots, METH_VARARGS, "Learns where Frame, Code, Entry and Reader keep things."},
    {NULL},
};

#define EACH(do)                                                                                              \
    do(filename) do(frames) do(seen) do(names) do(given) do(watched) do(set_heads) do(global_heads) do(writer) \
    do(out) do(objects) do(unheld) do(lock) do(entry_type)

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
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject StateType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "recorder_fast.State",
    .tp_basicsize = sizeof(State),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The part of a recorder that is in C.",
    .tp_new = PyType_GenericNew,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_members = members,
    .tp_methods = methods,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "recorder_fast", "The recorder's fast path.", -1, NULL};

PyMODINIT_FUNC PyInit_recorder_fast(void)
{
    static const char *what[8] = {"call", "exception", "line", "return", "c_call", "c_exception", "c_return", "opcode"};
    for (int i = 0; i < 8; i++)
        if ((str_what[i] = PyUnicode_InternFromString(what[i])) == NULL)
            return NULL;
    struct { PyObject **name; const char *text; } names[] = {
        {&str_set, "_set"}, {&str_check, "check"}, {&str_settle, "settle"}, {&str_namespace, "_namespace"},
        {&str_flush, "_flush"}, {&str_locked, "locked"}, {&str_event, "_event"}, {&str_call, "_call"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].name = PyUnicode_InternFromString(names[i].text)) == NULL)
            return NULL;
    if (PyType_Ready(&StateType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddObjectRef(module, "State", (PyObject *)&StateType) < 0)
        return NULL;
    return module;
}
