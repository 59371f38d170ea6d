/* Batches of prepared system calls: syscalls.py makes them and describes the calls. */
#ifndef BATCH_H
#define BATCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

enum { MAX_GIVEN = 4 /* numbers that a batch is given when it runs */ };

/* Takes the memory of a batch, an array of 64-bit words. Returns 0, or -1 with ValueError or BufferError set. */
int get_batch(PyObject *object, Py_buffer *view);

/* Makes the calls of a batch, up to the first that fails. */
void run_batch(const Py_buffer *view, const int64_t given[MAX_GIVEN]);

/* The memory of the zygote that its children share: share.c. */
void note_heap_start(void);
void note_arena(void *at, size_t size);
void forget_arena(void *at);
void share_memory(int use_huge_pages);
PyObject *give_back(PyObject *module, PyObject *args);

/* Forks into these namespaces (CLONE_NEW*). Returns the pid, 0 in the child, or -1. Stores a pidfd of the child. */
pid_t fork_into(int namespaces, int *pidfd);
void note_own_id(void); /* call it before the first fork_into */

/* Serves fork requests until it returns in a child: fork_server.c. */
PyObject *serve_forks(PyObject *module, PyObject *args);

#endif
