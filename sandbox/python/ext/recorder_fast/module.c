/* recorder_fast: the frequent part of the debugger's recorder, in C, for Python 3.11 to 3.14; it was not tried on 3.14.
 *
 * Recorder is a base class of recorder_extension.ExtensionRecorder, which handles rare events: the first use of a code
 * object or a class, threads, the texts of exceptions, the end of the budget, and stops. Both write the same records as the
 * recorders in Python. Variables are read from the slots of frames, and reading does not write to them, so frames of
 * closures can also be read. Library code runs untraced.
 *
 * Records are collected in Recorder.pending and written to the ring when a hook ends. Code that calls Python drains pending
 * first, so that records stay in order.
 *
 *     output     scalars as bytes, the ring
 *     peek       samples of objects
 *     tables     samples of arrays, series and frames
 *     objects    the table of objects, their records
 *     variables  variables in dicts and in the namespace
 *     frames     frames and their slots
 *     hooks      what the hooks of all versions share
 *     settrace   the trace function of Python 3.11
 *     evaluator  library code at full speed on Python 3.11
 *     monitoring the callbacks of Python 3.12 and later
 *     versions   the internals of CPython that differ between versions */
#include "hooks.h"

static PyObject *none_or_error(int failed) { return failed < 0 ? NULL : Py_NewRef(Py_None); }

/* -- Entry */

static PyObject *entry_children(PyObject *self, void *closure)
{
    Entry *e = (Entry *)self;
    PyObject *out = PyTuple_New(e->child_count);
    for (Py_ssize_t i = 0; out != NULL && i < e->child_count; i++)
        PyTuple_SET_ITEM(out, i, Py_NewRef(e->children[i]));
    return out;
}

static PyObject *entry_body(PyObject *self, void *closure)
{
    return PyBytes_FromStringAndSize((char *)((Entry *)self)->body, ((Entry *)self)->body_size);
}

static PyObject *entry_reader(PyObject *self, void *closure) { return Py_NewRef(((Entry *)self)->reader->reader); }

/* Entries of a cycle drop their children when they are forgotten, so that no entry outlives its last holder. */
static void entry_dealloc(PyObject *self)
{
    Entry *e = (Entry *)self;
    clear_children(e);
    clear_token(e);
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

PyTypeObject EntryType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "recorder_fast.Entry",
    .tp_basicsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "An object as it was recorded last.",
    .tp_dealloc = entry_dealloc,
    .tp_members = entry_members,
    .tp_getset = entry_getters,
};

/* -- Frame */

static PyObject *frame_recorded(PyObject *self, void *closure)
{
    Frame *known = (Frame *)self;
    if (known->recorded != NULL)
        return Py_NewRef(known->recorded);
    PyObject *out = PyDict_New(), *names = known->code->code->co_localsplusnames;
    for (int i = 0; out != NULL && i < known->slots; i++)
        if (known->last[i] != NULL && PyDict_SetItem(out, PyTuple_GET_ITEM(names, i), known->last[i]) < 0)
            Py_CLEAR(out);
    return out;
}

static PyObject *frame_code(PyObject *self, void *closure) { return Py_NewRef(((Frame *)self)->code->known); }

static void frame_dealloc(PyObject *self)
{
    Frame *known = (Frame *)self;
    for (int i = 0; known->last != NULL && i < known->slots; i++)
        Py_XDECREF(known->last[i]);
    PyMem_Free(known->last);
    Py_XDECREF(known->recorded);
    Py_XDECREF(known->failure);
    PyObject_Free(self);
}

static PyMemberDef frame_members[] = {
    {"number", T_LONGLONG, offsetof(Frame, number), READONLY, NULL},
    {"thread", T_LONGLONG, offsetof(Frame, thread), READONLY, NULL},
    {"parent", T_LONGLONG, offsetof(Frame, parent), READONLY, NULL},
    {"line", T_LONGLONG, offsetof(Frame, line), READONLY, NULL},
    {"suspended", T_BOOL, offsetof(Frame, suspended), READONLY, NULL},
    {"failure", T_OBJECT, offsetof(Frame, failure), 0, NULL},
    {NULL},
};

static PyGetSetDef frame_getters[] = {
    {"recorded", frame_recorded, NULL, NULL, NULL},
    {"code", frame_code, NULL, NULL, NULL},
    {NULL},
};

PyTypeObject FrameType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "recorder_fast.Frame",
    .tp_basicsize = sizeof(Frame),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A frame that runs or is suspended.",
    .tp_dealloc = frame_dealloc,
    .tp_members = frame_members,
    .tp_getset = frame_getters,
};

/* -- Recorder: methods */

#if !HAS_MONITORING

static PyObject *attach(PyObject *self, PyObject *none)
{
    PyEval_SetTrace(trace_event, self);
    install_evaluator();
    Py_RETURN_NONE;
}

static PyObject *detach(PyObject *self, PyObject *none)
{
    remove_evaluator();
    PyEval_SetTrace(NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *is_attached(PyObject *self, PyObject *none)
{
    PyThreadState *t = PyThreadState_Get();
    return PyBool_FromLong(t->c_tracefunc == trace_event && t->c_traceobj == self && !is_evaluator_replaced());
}

#endif

static PyObject *enter(PyObject *self, PyObject *none)
{
    lock_recorder((Recorder *)self);
    Py_RETURN_NONE;
}

static PyObject *leave(PyObject *self, PyObject *error)
{
    unlock_recorder((Recorder *)self);
    Py_RETURN_NONE;
}

static PyObject *begin_event(PyObject *self, PyObject *none)
{
    ((Recorder *)self)->event++;
    Py_RETURN_NONE;
}

static PyObject *flush_all(PyObject *self, PyObject *none) { return none_or_error(flush((Recorder *)self)); }

static PyObject *bytes_sent(PyObject *self, PyObject *none) { return PyLong_FromUnsignedLongLong(((Recorder *)self)->written); }

static PyObject *record_variable(PyObject *self, PyObject *args)
{
    PyObject *recorded, *name, *old, *value;
    Recorder *r = (Recorder *)self;
    int record;
    if (!PyArg_ParseTuple(args, "iO!UOO", &record, &PyDict_Type, &recorded, &name, &old, &value))
        return NULL;
    return none_or_error(record_in_dict(r, record, recorded, name, value, NULL) < 0 ? -1 : drain(r));
}

static PyObject *read_frame(PyObject *self, PyObject *args)
{
    Recorder *r = (Recorder *)self;
    PyObject *frame, *known;
    if (!PyArg_ParseTuple(args, "O!O!", &PyFrame_Type, &frame, &FrameType, &known))
        return NULL;
    int failed = forget_unheld(r) < 0 || read_variables(r, (PyFrameObject *)frame, (Frame *)known) < 0;
    return none_or_error(failed ? -1 : drain(r));
}

static PyObject *record_deletion(PyObject *self, PyObject *args)
{
    PyObject *recorded, *name;
    Recorder *r = (Recorder *)self;
    int record;
    if (!PyArg_ParseTuple(args, "iO!U", &record, &PyDict_Type, &recorded, &name))
        return NULL;
    return none_or_error(delete_from_dict(r, record, recorded, name) < 0 ? -1 : drain(r));
}

static PyObject *live_frames(PyObject *self, PyObject *none)
{
    Map *m = &((Recorder *)self)->frames;
    PyObject *out = PyList_New(0);
    for (size_t i = 0; out != NULL && i < m->slots; i++)
        if (m->values[i] != NULL) {
            PyObject *pair = PyTuple_Pack(2, m->keys[i], m->values[i]);
            if (pair == NULL || PyList_Append(out, pair) < 0)
                Py_CLEAR(out);
            Py_XDECREF(pair);
        }
    return out;
}

static PyObject *forget_objects_except(PyObject *self, PyObject *numbers)
{
    Recorder *r = (Recorder *)self;
    Map *m = &r->entries;
    for (size_t i = 0; i < m->slots; i++) {
        Entry *e = m->values[i];
        if (e == NULL)
            continue;
        PyObject *number = PyLong_FromLongLong(e->number);
        int kept = number ? PySet_Contains(numbers, number) : -1;
        Py_XDECREF(number);
        if (kept == 0) {
            e->holders = 0;
            kept = queue_unheld(r, e);
        }
        if (kept < 0)
            return NULL;
    }
    return none_or_error(forget_unheld(r) < 0 ? -1 : drain(r));
}

static void clear_frames(Recorder *r)
{
    Map m = r->frames;
    memset(&r->frames, 0, sizeof r->frames);
    r->last_frame = NULL;
    r->last_known = NULL;
    for (size_t i = 0; i < m.slots; i++)
        if (m.values[i] != NULL) {
            Py_DECREF((PyObject *)m.values[i]);
            Py_DECREF((PyObject *)m.keys[i]);
        }
    map_free(&m);
}

static PyObject *forget_frames(PyObject *self, PyObject *none)
{
    clear_frames((Recorder *)self);
    Py_RETURN_NONE;
}

static PyObject *frame_locals(PyObject *self, PyObject *frame)
{
    if (!PyFrame_Check(frame))
        return PyErr_Format(PyExc_TypeError, "_frame_locals takes a frame, not %s", Py_TYPE(frame)->tp_name);
    RunningFrame *running = ((PyFrameObject *)frame)->f_frame;
    PyCodeObject *co = code_in_frame(running);
    if (!(co->co_flags & CO_OPTIMIZED))
        return PyObject_GetAttrString(frame, "f_locals");
    PyObject *out = PyDict_New();
    for (int i = 0; out != NULL && i < co->co_nlocalsplus; i++) {
        PyObject *value = variable_in_slot(running, co, i);
        if (value != NULL && PyDict_SetItem(out, PyTuple_GET_ITEM(co->co_localsplusnames, i), value) < 0)
            Py_CLEAR(out);
    }
    return out;
}

static PyObject *assign_variable(PyObject *self, PyObject *args)
{
    PyObject *frame, *name, *value;
    if (!PyArg_ParseTuple(args, "O!UO", &PyFrame_Type, &frame, &name, &value))
        return NULL;
    RunningFrame *running = ((PyFrameObject *)frame)->f_frame;
    PyCodeObject *co = code_in_frame(running);
    for (int i = 0; i < co->co_nlocalsplus; i++) {
        PyObject *held = slot_of(running, i);
        if (PyUnicode_Compare(PyTuple_GET_ITEM(co->co_localsplusnames, i), name) != 0 ||
            (held == NULL && kind_of_slot(co, i) & HIDDEN_SLOT)) /* that comprehension does not run now */
            continue;
        if (held != NULL && kind_of_slot(co, i) & (CO_FAST_CELL | CO_FAST_FREE) && PyCell_Check(held)) {
            if (PyCell_Set(held, value) < 0)
                return NULL;
        } else
            set_slot(running, i, value);
        Py_RETURN_TRUE;
    }
    Py_RETURN_FALSE;
}

static PyObject *open_ring(PyObject *self, PyObject *memory)
{
    Recorder *r = (Recorder *)self;
    if (PyObject_GetBuffer(memory, &r->ring, PyBUF_WRITABLE) < 0)
        return NULL;
    if (r->ring.len < RING_HEAD + RING_SIZE)
        return PyErr_Format(PyExc_ValueError, "the ring has %zd bytes, want %d", r->ring.len, RING_HEAD + RING_SIZE);
    r->ring_space = RING_SIZE;
    Py_RETURN_NONE;
}

static PyObject *close_ring(PyObject *self, PyObject *none)
{
    PyBuffer_Release(&((Recorder *)self)->ring);
    ((Recorder *)self)->ring_space = 0;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
#if !HAS_MONITORING
    {"attach", attach, METH_NOARGS, "Traces this thread."},
    {"detach", detach, METH_NOARGS, "Stops tracing this thread."},
    {"is_attached", is_attached, METH_NOARGS, "Tells whether this thread is traced, and nothing has replaced the evaluator."},
#endif
    {"__enter__", enter, METH_NOARGS, "Keeps out the hooks of other threads."},
    {"__exit__", leave, METH_VARARGS, "Lets in the hooks of other threads."},
    {"_begin_event", begin_event, METH_NOARGS, "recorder.Recorder._begin_event"},
    {"_flush", flush_all, METH_NOARGS, "recorder.Recorder._flush"},
    {"_bytes_sent", bytes_sent, METH_NOARGS, "recorder.Recorder._bytes_sent"},
    {"_record_variable", record_variable, METH_VARARGS, "recorder_variables.Variables._record_variable"},
    {"_read_frame", read_frame, METH_VARARGS, "Records the changes of the variables that a frame can reach."},
    {"_record_deletion", record_deletion, METH_VARARGS, "recorder_variables.Variables._record_deletion"},
    {"_live_frames", live_frames, METH_NOARGS, "recorder.Recorder._live_frames"},
    {"_forget_frames", forget_frames, METH_NOARGS, "recorder.Recorder._forget_frames"},
    {"_forget_objects_except", forget_objects_except, METH_O, "recorder.Recorder._forget_objects_except"},
    {"_frame_locals", frame_locals, METH_O, "Returns a frame's variables in a new dict."},
    {"_assign_variable", assign_variable, METH_VARARGS, "Sets a variable of a frame. Returns False if it has none of that name."},
    {"_open_ring", open_ring, METH_O, "Writes records to this memory from now on."},
    {"_close_ring", close_ring, METH_NOARGS, "Releases the memory of the ring."},
    {NULL},
};

/* -- Recorder: the class */

#define OBJECT_FIELD(name, field) {name, T_OBJECT_EX, offsetof(Recorder, field), 0, NULL}

static PyMemberDef members[] = {
    {"steps", T_LONGLONG, offsetof(Recorder, steps), 0, NULL},
    {"budget_step", T_LONGLONG, offsetof(Recorder, budget_step), 0, NULL},
    {"ended", T_BOOL, offsetof(Recorder, ended), 0, NULL},
    {"tail_only", T_BOOL, offsetof(Recorder, tail_only), 0, NULL},
    {"_current_frame", T_LONGLONG, offsetof(Recorder, current_frame), 0, NULL},
    {"_max_objects", T_LONGLONG, offsetof(Recorder, max_objects), 0, NULL},
    {"_watch_all", T_BOOL, offsetof(Recorder, watch_all), 0, NULL},
    {"_few_names", T_PYSSIZET, offsetof(Recorder, few_names), 0, NULL},
    {"_full_read_interval", T_PYSSIZET, offsetof(Recorder, full_read_interval), 0, NULL},
    OBJECT_FIELD("control", control),
    OBJECT_FIELD("stop_lines", stop_lines),
    OBJECT_FIELD("_filename", filename),
    OBJECT_FIELD("_channel", channel),
    OBJECT_FIELD("_recorded", recorded),
    OBJECT_FIELD("_names", names),
    OBJECT_FIELD("_helpers", helpers),
    OBJECT_FIELD("_watched", watched),
    OBJECT_FIELD("_set_prefixes", set_prefixes),
    OBJECT_FIELD("_global_prefixes", global_prefixes),
    OBJECT_FIELD("_out", out),
    OBJECT_FIELD("_wait", wait),
    OBJECT_FIELD("_task_step", task_step),
    OBJECT_FIELD("_objects", objects),
    OBJECT_FIELD("_format", format),
    OBJECT_FIELD("_raw", raw),
    OBJECT_FIELD("_disable", disable),
    {NULL},
};

#define EACH_OBJECT(do)                                                                                         \
    do(filename) do(filename_alias) do(channel) do(recorded) do(names) do(helpers) do(watched) do(set_prefixes) \
    do(global_prefixes) do(out) do(wait) do(control) do(stop_lines) do(task_step) do(objects) do(format)        \
    do(raw) do(disable)

static PyObject *new_recorder(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Recorder *r = (Recorder *)type->tp_alloc(type, 0);
    if (r != NULL && (r->wake = PyThread_allocate_lock()) == NULL)
        Py_CLEAR(r);
    else if (r != NULL)
        PyThread_acquire_lock(r->wake, NOWAIT_LOCK);
    return (PyObject *)r;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Recorder *r = (Recorder *)self;
#define VISIT(field) Py_VISIT(r->field);
    EACH_OBJECT(VISIT)
    return 0;
}

static int clear(PyObject *self)
{
    Recorder *r = (Recorder *)self;
#define CLEAR(field) Py_CLEAR(r->field);
    EACH_OBJECT(CLEAR)
    clear_frames(r);
    return 0;
}

static void free_code(Code *code)
{
    Py_XDECREF(code->known);
    Py_XDECREF(code->number);
    Py_XDECREF(code->reads);
    Py_XDECREF(code->names_by_line);
    Py_XDECREF(code->names_of_turn);
    Py_XDECREF(code->sets_before_calls);
    Py_XDECREF(code->comprehensions);
    Py_XDECREF((PyObject *)code->spare);
    Py_XDECREF(code->code);
    PyMem_Free(code->prefixes);
    PyMem_Free(code->cached_names);
    PyMem_Free(code->cached_turns);
    PyMem_Free(code);
}

static void free_reader(Reader *reader)
{
    Py_XDECREF(reader->reader);
    Py_XDECREF(reader->name);
    Py_XDECREF(reader->peek);
    Py_XDECREF(reader->members);
    Py_XDECREF(reader->kind);
    PyMem_Free(reader);
}

static void dealloc(PyObject *self)
{
    Recorder *r = (Recorder *)self;
    PyObject_GC_UnTrack(self);
    clear(self);
    PyBuffer_Release(&r->ring);
    while (r->unheld_count > 0)
        Py_DECREF(r->unheld[--r->unheld_count]);
    PyMem_Free(r->unheld);
    PyMem_Free(r->free_numbers);
    for (size_t i = 0; i < r->entries.slots; i++)
        if (r->entries.values[i] != NULL)
            clear_children(r->entries.values[i]); /* they may be a cycle */
    for (size_t i = 0; i < r->entries.slots; i++)
        Py_XDECREF((PyObject *)r->entries.values[i]);
    for (size_t i = 0; i < r->codes.slots; i++)
        if (r->codes.values[i] != NULL)
            free_code(r->codes.values[i]);
    for (size_t i = 0; i < r->readers.slots; i++)
        if (r->readers.values[i] != NULL)
            free_reader(r->readers.values[i]);
    map_free(&r->entries);
    map_free(&r->codes);
    map_free(&r->readers);
    PyMem_Free(r->pending.data);
    PyMem_Free(r->bodies.data);
    if (r->wake != NULL) {
        PyThread_release_lock(r->wake);
        PyThread_free_lock(r->wake);
    }
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject RecorderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "recorder_fast.Recorder",
    .tp_basicsize = sizeof(Recorder),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The part of a recorder that is in C.",
    .tp_new = new_recorder,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_members = members,
    .tp_methods = methods,
#if HAS_MONITORING
    .tp_getset = callbacks,
#endif
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "recorder_fast", "The frequent part of the recorder.", -1, NULL};

PyMODINIT_FUNC PyInit_recorder_fast(void)
{
    if (prepare_peek() < 0 || prepare_tables() < 0 || prepare_hooks() < 0 || PyType_Ready(&RecorderType) < 0 ||
        PyType_Ready(&FrameType) < 0 || PyType_Ready(&EntryType) < 0)
        return NULL;
#if HAS_MONITORING
    if (PyType_Ready(&CallbackType) < 0)
        return NULL;
#endif
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddObjectRef(module, "Recorder", (PyObject *)&RecorderType) < 0 ||
        PyModule_AddObjectRef(module, "Entry", (PyObject *)&EntryType) < 0 ||
        PyModule_AddIntConstant(module, "ABI_VERSION", ABI_VERSION) < 0)
        return NULL;
    return module;
}
