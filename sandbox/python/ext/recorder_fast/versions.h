/* The internals of CPython that differ between its versions. Where the documented API is fast enough, it is used. */
#ifndef VERSIONS_H
#define VERSIONS_H

#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE /* for the layout of frames and dicts */
#include <Python.h>

#include <structmember.h>
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_object.h>
#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_setobject.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#endif
#undef Py_BUILD_CORE

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030f0000
#error "recorder_fast reads frames and objects as Python 3.11 to 3.14 lay them out"
#endif
#ifdef Py_GIL_DISABLED
#error "recorder_fast needs the GIL"
#endif

#define HAS_MONITORING (PY_VERSION_HEX >= 0x030c0000)

#if HAS_MONITORING
enum { HIDDEN_SLOT = CO_FAST_HIDDEN }; /* of a comprehension that is inlined into the code of a module or class */
#else
enum { HIDDEN_SLOT = 0 }; /* each comprehension has a frame of its own */
#endif

typedef _PyInterpreterFrame RunningFrame;

/* Returns the frame that called this one, or NULL. Frames that belong only to the interpreter are left out. */
static inline RunningFrame *calling_frame(RunningFrame *frame)
{
    frame = frame->previous;
#if PY_VERSION_HEX >= 0x030e0000
    while (frame != NULL && frame->owner >= FRAME_OWNED_BY_INTERPRETER)
        frame = frame->previous;
#elif HAS_MONITORING
    while (frame != NULL && frame->owner == FRAME_OWNED_BY_CSTACK)
        frame = frame->previous;
#endif
    return frame;
}

/* Returns the code object of a frame; borrowed. */
static inline PyCodeObject *code_in_frame(RunningFrame *frame)
{
#if PY_VERSION_HEX >= 0x030d0000
    return _PyFrame_GetCode(frame);
#else
    return frame->f_code;
#endif
}

/* Returns what is in a slot of a frame, a variable or its cell; borrowed. */
static inline PyObject *slot_of(RunningFrame *frame, int i)
{
#if PY_VERSION_HEX >= 0x030e0000
    return PyStackRef_IsNull(frame->localsplus[i]) ? NULL : PyStackRef_AsPyObjectBorrow(frame->localsplus[i]);
#else
    return frame->localsplus[i];
#endif
}

/* Puts an object into a slot of a frame. */
static inline void set_slot(RunningFrame *frame, int i, PyObject *value)
{
#if PY_VERSION_HEX >= 0x030e0000
    _PyStackRef before = frame->localsplus[i];
    frame->localsplus[i] = PyStackRef_FromPyObjectNew(value);
    PyStackRef_XCLOSE(before);
#else
    PyObject *before = frame->localsplus[i];
    frame->localsplus[i] = Py_NewRef(value);
    Py_XDECREF(before);
#endif
}

/* Returns the pairs of a dict in their order, if all keys are str and no place between them is free; otherwise NULL. */
static inline PyDictUnicodeEntry *plain_entries(PyObject *dict)
{
    PyDictObject *d = (PyDictObject *)dict;
    PyDictKeysObject *keys = d->ma_keys;
    return keys->dk_kind == DICT_KEYS_UNICODE && d->ma_values == NULL && keys->dk_nentries == d->ma_used
               ? DK_UNICODE_ENTRIES(keys) : NULL;
}

/* Returns what the hash table of a dict has at a place: the index of a pair, -1 if the place was never used, -2. */
static inline Py_ssize_t index_in_keys(PyDictKeysObject *keys, size_t at)
{
    if (keys->dk_log2_size < 8)
        return ((const int8_t *)keys->dk_indices)[at];
    if (keys->dk_log2_size < 16)
        return ((const int16_t *)keys->dk_indices)[at];
#if SIZEOF_VOID_P > 4
    if (keys->dk_log2_size >= 32)
        return (Py_ssize_t)((const int64_t *)keys->dk_indices)[at];
#endif
    return ((const int32_t *)keys->dk_indices)[at];
}

/* Allows this number of nested calls more, or less if it is negative. */
static inline void add_call_space(PyThreadState *thread, int calls)
{
#if HAS_MONITORING
    thread->py_recursion_remaining += calls;
#if PY_VERSION_HEX < 0x030e0000
    thread->c_recursion_remaining += calls;
#endif
#else
    thread->recursion_remaining += calls;
#endif
}

/* Stores the value of a small int in *value. Returns 0 if the int is not small. */
static inline int small_int(PyObject *object, long long *value)
{
#if HAS_MONITORING
    if (!PyUnstable_Long_IsCompact((PyLongObject *)object))
        return 0;
    *value = PyUnstable_Long_CompactValue((PyLongObject *)object);
#else
    Py_ssize_t digits = Py_SIZE(object);
    if (digits < -1 || digits > 1)
        return 0;
    *value = digits * (long long)((PyLongObject *)object)->ob_digit[0] * (digits != 0);
#endif
    return 1;
}

/* Returns the exception that is set, and clears it. */
static inline PyObject *take_exception(void)
{
#if HAS_MONITORING
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* Finds an attribute. Returns 1, 0 with *found = NULL if the object has none, or -1. */
static inline int find_attribute(PyObject *object, PyObject *name, PyObject **found)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyObject_GetOptionalAttr(object, name, found);
#else
    return _PyObject_LookupAttr(object, name, found);
#endif
}

#endif
