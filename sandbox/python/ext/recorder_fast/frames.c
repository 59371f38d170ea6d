#include "frames.h"

enum { MAX_SPARE_SLOTS = 64 };

/* Returns the description of a code object. Python makes it once. */
static Code *code_of(Recorder *r, PyCodeObject *co)
{
    Code *code = map_get(&r->codes, co);
    if (code != NULL)
        return code;
    PyObject *known = call_python(r, (PyObject *)r, "_code_of", "(O)", co);
    if (known == NULL || (code = PyMem_Calloc(1, sizeof *code)) == NULL)
        return NULL;
    PyObject *module = PyObject_GetAttrString(known, "module"), *task = PyObject_GetAttrString(known, "task");
    PyObject *own = PyObject_GetAttrString(known, "is_comprehension");
    code->known = known;
    code->number = PyObject_GetAttrString(known, "number");
    code->reads = PyObject_GetAttrString(known, "reads");
    code->names_by_line = PyObject_GetAttrString(known, "names_by_line");
    code->names_of_turn = PyObject_GetAttrString(known, "names_of_turn");
    code->comprehensions = PyObject_GetAttrString(known, "comprehensions");
    code->sets_before_calls = PyObject_GetAttrString(known, "sets_before_calls");
    code->is_comprehension = own == Py_True;
    code->prefixes = PyMem_Calloc(co->co_nlocalsplus + 1, sizeof *code->prefixes);
    code->is_module = module == Py_True;
    code->is_task = task == Py_True;
    code->is_optimized = co->co_flags & CO_OPTIMIZED;
    code->first_line = co->co_firstlineno;
    if (code->is_module) {
        code->cached_names = PyMem_Calloc(1, sizeof *code->cached_names);
        code->cached_turns = PyMem_Calloc(1, sizeof *code->cached_turns);
        if (code->cached_names == NULL || code->cached_turns == NULL)
            PyErr_NoMemory();
    }
    code->has_hidden_slots = code->is_module && HIDDEN_SLOT && co->co_nlocalsplus > 0;
    code->code = (PyCodeObject *)Py_NewRef(co);
    Py_XDECREF(module);
    Py_XDECREF(task);
    Py_XDECREF(own);
    if (PyErr_Occurred() || code->prefixes == NULL || map_set(&r->codes, co, code) < 0)
        return NULL;
    return code;
}

/* Records what the line of a caller has set before the call: Recorder._read_caller. */
static int read_caller(Recorder *r, PyFrameObject *frame, Frame *known)
{
    PyObject *lines = known->code->sets_before_calls, *line;
    if (PySet_GET_SIZE(lines) == 0)
        return 0;
    if ((line = PyLong_FromLongLong(known->line)) == NULL)
        return -1;
    int sets = PySet_Contains(lines, line);
    Py_DECREF(line);
    return sets <= 0 ? sets : switch_to_frame(r, known) < 0 ? -1 : read_variables(r, frame, known);
}

/* Returns the user's frame that called this one: Recorder._caller. The frame is in *caller. */
static Frame *caller_of(Recorder *r, PyFrameObject *frame, Code *code, PyFrameObject **caller)
{
    for (RunningFrame *back = calling_frame(frame->f_frame); back != NULL; back = calling_frame(back)) {
        if (code->is_task && (PyObject *)code_in_frame(back) == r->task_step)
            return NULL;
        if (back->frame_obj != NULL) {
            Frame *known = map_get(&r->frames, back->frame_obj);
            if (known != NULL) {
                *caller = back->frame_obj;
                return known;
            }
        }
    }
    return NULL;
}

int switch_to_frame(Recorder *r, Frame *known)
{
    if (r->current_frame == known->number)
        return 0;
    r->current_frame = known->number;
    if (reserve(&r->pending, 16) < 0)
        return -1;
    put_byte(&r->pending, FRAME);
    put_number(&r->pending, known->number);
    return 0;
}

/* Returns a frame without variables. */
static Frame *new_frame(Code *code)
{
    Frame *known = code->spare;
    if (known != NULL) {
        code->spare = NULL;
        return known;
    }
    if ((known = PyObject_New(Frame, &FrameType)) == NULL)
        return NULL;
    memset((char *)known + sizeof(PyObject), 0, sizeof *known - sizeof(PyObject));
    known->slots = code->code->co_nlocalsplus;
    if ((known->last = PyMem_Calloc(known->slots + 1, sizeof *known->last)) == NULL) {
        Py_DECREF(known);
        PyErr_NoMemory();
        return NULL;
    }
    return known;
}

/* Releases a frame that has ended, or keeps it for the next call of its code. */
static void end_frame(Frame *known)
{
    Code *code = known->code;
    if (Py_REFCNT(known) > 1 || code->spare != NULL || known->slots > MAX_SPARE_SLOTS) {
        Py_DECREF(known);
        return;
    }
    PyObject **last = known->last;
    int slots = known->slots;
    for (int i = 0; i < slots; i++)
        Py_CLEAR(last[i]);
    Py_CLEAR(known->recorded);
    Py_CLEAR(known->failure);
    memset((char *)known + sizeof(PyObject), 0, sizeof *known - sizeof(PyObject));
    known->last = last;
    known->slots = slots;
    code->spare = known;
}

static Frame *push_frame(Recorder *r, PyFrameObject *frame)
{
    if (forget_unheld(r) < 0) /* new objects may take the addresses of these */
        return NULL;
    Code *code = code_of(r, code_in_frame(frame->f_frame));
    Frame *known = code ? new_frame(code) : NULL;
    if (known == NULL)
        return NULL;
    known->code = code;
    PyFrameObject *caller;
    Frame *parent = caller_of(r, frame, code, &caller);
    if (parent != NULL && read_caller(r, caller, parent) < 0) {
        Py_DECREF(known);
        return NULL;
    }
    known->number = ++r->frames_pushed;
    known->line = code->first_line;
    if (!code->is_optimized)
        known->recorded = PyDict_New();
    if (parent) {
        known->parent = parent->number;
        known->thread = parent->thread;
    } else {
        PyObject *thread = call_python(r, (PyObject *)r, "_thread_of", "(OO)", frame, code->known);
        known->thread = thread ? PyLong_AsLongLong(thread) : -1;
        Py_XDECREF(thread);
    }
    if (known->thread < 0 || map_set(&r->frames, frame, known) < 0 ||
        reserve(&r->pending, 64 + PyBytes_GET_SIZE(code->number)) < 0) {
        Py_DECREF(known);
        return NULL;
    }
    Py_INCREF(frame);
    Buffer *b = &r->pending;
    put_byte(b, PUSH);
    put_number(b, r->tail_only ? known->number : 0);
    put_raw(b, PyBytes_AS_STRING(code->number), PyBytes_GET_SIZE(code->number));
    put_number(b, known->thread);
    put_number(b, known->parent);
    put_byte(b, 0);
    r->current_frame = known->number;
    if (!code->is_optimized && !code->is_module && /* a metaclass may have prepared the names of a class body */
        discard(call_python(r, (PyObject *)r, "_record_unread", "(O)", code->known)) < 0)
        return NULL;
    return known;
}

Frame *enter_frame(Recorder *r, PyFrameObject *frame)
{
    Frame *known = frame == r->last_frame ? r->last_known : map_get(&r->frames, frame);
    if (known == NULL && (known = push_frame(r, frame)) == NULL)
        return NULL;
    r->last_frame = frame;
    r->last_known = known;
    if (known->suspended) {
        PyFrameObject *caller;
        Frame *parent = caller_of(r, frame, known->code, &caller);
        if (parent != NULL && read_caller(r, caller, parent) < 0)
            return NULL;
        known->suspended = 0;
        known->parent = parent ? parent->number : 0;
        if (reserve(&r->pending, 32) < 0)
            return NULL;
        put_byte(&r->pending, RESUME);
        put_number(&r->pending, known->number);
        put_number(&r->pending, known->parent);
        r->current_frame = known->number;
    }
    return known;
}

PyObject *variable_in_slot(RunningFrame *frame, PyCodeObject *co, int i)
{
    PyObject *value = slot_of(frame, i);
    if (value != NULL && kind_of_slot(co, i) & (CO_FAST_CELL | CO_FAST_FREE) && PyCell_Check(value))
        value = PyCell_GET(value);
    return value;
}

/* Records that variables of the frame are not set any more. */
static int delete_slots(Recorder *r, PyFrameObject *frame, Frame *known)
{
    PyCodeObject *co = known->code->code;
    for (int i = 0; i < known->slots; i++) {
        PyObject *old = known->last[i];
        if (old == NULL || variable_in_slot(frame->f_frame, co, i) != NULL)
            continue;
        known->last[i] = NULL;
        int failed = append_name_record(r, DELETE, PyTuple_GET_ITEM(co->co_localsplusnames, i)) < 0 ||
                     (IS_ENTRY(old) && drop_holder(r, (Entry *)old) < 0);
        Py_DECREF(old);
        if (failed)
            return -1;
    }
    return 0;
}

/* Records the changes of the frame's own variables, which are in its slots. */
static int read_slots(Recorder *r, PyFrameObject *frame, Frame *known)
{
    PyCodeObject *co = known->code->code;
    int deletions = 0;
    for (int i = 0; i < known->slots; i++) {
        PyObject *value = variable_in_slot(frame->f_frame, co, i), *old = known->last[i], *recorded = NULL;
        if (value == old) /* a scalar that last holds, or NULL twice */
            continue;
        PyObject *name = PyTuple_GET_ITEM(co->co_localsplusnames, i), *prefix = known->code->prefixes[i];
        if (prefix == NULL) {
            if (is_hidden(SET, name))
                continue;
            if ((prefix = prefix_of(r, SET, name)) == NULL)
                return -1;
            known->code->prefixes[i] = prefix;
        }
        if (value == NULL) {
            deletions = 1;
            continue;
        }
        Py_INCREF(value); /* while the recorder's Python code may run */
        int got = record_value(r, SET, prefix, old, value, &recorded);
        if (got > 0) {
            known->last[i] = recorded;
            Py_XDECREF(old);
        }
        Py_DECREF(value);
        if (got < 0)
            return -1;
    }
    return deletions ? delete_slots(r, frame, known) : 0;
}

/* Records the variables of comprehensions that are inlined into the code of the module: Variables._read_hidden. */
static int read_hidden_slots(Recorder *r, PyFrameObject *frame, Frame *known)
{
    PyCodeObject *co = known->code->code;
    int are_set = 0;
    for (int i = 0; i < co->co_nlocalsplus; i++) {
        PyObject *value = variable_in_slot(frame->f_frame, co, i), *name = PyTuple_GET_ITEM(co->co_localsplusnames, i);
        if (value == NULL)
            continue;
        are_set = 1;
        if (find_name(r, name) != value && record_in_dict(r, SET, known->recorded, name, value, NULL) < 0)
            return -1;
    }
    if (are_set || PyDict_GET_SIZE(known->recorded) == 0)
        return 0;
    PyObject *names = PySequence_Tuple(known->recorded);
    int failed = names == NULL;
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(names); i++)
        failed = delete_from_dict(r, DELETE, known->recorded, PyTuple_GET_ITEM(names, i)) < 0;
    Py_XDECREF(names);
    return failed ? -1 : 0;
}

PyObject *get_by_number(PyObject *dict, long long number)
{
    PyObject *key = PyLong_FromLongLong(number), *value = key ? PyDict_GetItemWithError(dict, key) : NULL;
    Py_XDECREF(key);
    return value;
}

PyObject *get_cached(NumberCache *cache, PyObject *dict, long long number)
{
    size_t place = (size_t)number % CACHED_NUMBERS;
    if (cache->number[place] == number + 1)
        return cache->value[place];
    PyObject *value = get_by_number(dict, number);
    if (value != NULL || !PyErr_Occurred()) {
        cache->number[place] = number + 1;
        cache->value[place] = value;
    }
    return value;
}

static int read_own_variables(Recorder *r, PyFrameObject *frame, Frame *known)
{
    Code *code = known->code;
    r->event++;
    if (code->is_module && !r->watch_all) {
        if (code->has_hidden_slots && read_hidden_slots(r, frame, known) < 0)
            return -1;
        PyObject *names = known->turn;
        if (names == NULL)
            names = get_cached(code->cached_names, code->names_by_line, known->line);
        if (names == NULL ? PyErr_Occurred() != NULL : read_namespace(r, names) < 0)
            return -1;
        if (r->steps % r->full_read_interval == 0)
            return read_namespace(r, r->watched);
        if (PyTuple_GET_SIZE(r->watched) > r->few_names)
            return 0;
        r->skips_tables = 1;
        int failed = read_namespace(r, r->watched);
        r->skips_tables = 0;
        return failed;
    }
    if (code->is_optimized)
        return read_slots(r, frame, known) < 0 ? -1 : read_namespace(r, code->reads);
    return discard(call_python(r, (PyObject *)r, "_read_variables", "(OO)", frame, known));
}

int read_variables(Recorder *r, PyFrameObject *frame, Frame *known)
{
    int failed = read_own_variables(r, frame, known);
    if (failed == 0 && r->array_changed) { /* Variables._read_sharing_arrays */
        r->skips_tables = 2;
        failed = read_namespace(r, r->watched);
        r->skips_tables = 0;
    }
    r->array_changed = 0;
    return failed;
}

/* Drops the objects that the variables of a frame hold. */
static int drop_variables(Recorder *r, Frame *known)
{
    int failed = 0;
    for (int i = 0; i < known->slots; i++)
        if (known->last[i] != NULL && IS_ENTRY(known->last[i]))
            failed = drop_holder(r, (Entry *)known->last[i]) < 0 || failed;
    if (known->recorded != NULL) {
        PyObject *name, *old;
        Py_ssize_t i = 0;
        while (PyDict_Next(known->recorded, &i, &name, &old))
            if (IS_ENTRY(old))
                failed = drop_holder(r, (Entry *)old) < 0 || failed;
    }
    return failed ? -1 : 0;
}

int leave_frame(Recorder *r, PyFrameObject *frame, Frame *known, int record, PyObject *value)
{
    Entry *held = NULL;
    Buffer *b = &r->pending;
    /* the record of an exception comes after the changes of its line */
    if (switch_to_frame(r, known) < 0 || ((value != NULL || !known->raised) && read_variables(r, frame, known) < 0))
        return -1;
    if (value == NULL) {
        PyObject *failure = known->failure;
        if (failure == NULL || reserve(b, 1 + PyBytes_GET_SIZE(failure)) < 0)
            return -1;
        put_byte(b, record);
        put_raw(b, PyBytes_AS_STRING(failure), PyBytes_GET_SIZE(failure));
    } else {
        char byte = (char)record;
        PyObject *prefix = PyBytes_FromStringAndSize(&byte, 1); /* CPython has one object for each byte */
        if (prefix == NULL)
            return -1;
        int written = append_scalar(r, b, prefix, value);
        Py_DECREF(prefix);
        if (written == 0) {
            if ((held = entry_of(r, value, 0)) == NULL || reserve(b, 24) < 0)
                return -1;
            put_byte(b, record);
            put_byte(b, '@');
            put_number(b, held->number);
        } else if (written < 0)
            return -1;
    }
    r->current_frame = known->parent;
    if (record == SUSPEND) {
        known->suspended = 1;
        known->parent = 0;
    } else {
        if (r->last_frame == frame) {
            r->last_frame = NULL;
            r->last_known = NULL;
        }
        map_remove(&r->frames, frame);
        int failed = drop_variables(r, known) < 0;
        end_frame(known);
        Py_DECREF(frame);
        if (failed)
            return -1;
    }
    return held != NULL && held->holders <= 0 ? queue_unheld(r, held) : 0;
}
