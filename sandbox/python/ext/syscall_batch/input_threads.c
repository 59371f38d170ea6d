/* The threads of Python that start during a run: nothing repeats their order, so a replay names it as a cause. */
#define _GNU_SOURCE
#include "inputs.h"

#include <dlfcn.h>
#include <pthread.h>

/* Tells whether a function is of the interpreter. Libraries start threads with functions of their own, and wait for
 * them. */
static int is_python(void *function)
{
    Dl_info used, own;
    void *python = dlsym(RTLD_DEFAULT, "PyThread_start_new_thread"); /* other programs have this library, too */
    return dladdr(function, &used) && dladdr(python, &own) && used.dli_fbase == own.dli_fbase;
}

REPLACE(int, pthread_create, (pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                              void *(*routine)(void *), void *restrict argument))
{
    int failed = NEXT(pthread_create)(thread, attributes, routine, argument);
    if (!failed && has_run() && is_python(routine))
        note_thread();
    return failed;
}
