/* A fork into new namespaces, which the fork of the C library cannot make.
 *
 * The library's fork also calls the handlers of pthread_atfork. This library is in LD_PRELOAD, so it sees them
 * registered and calls them itself. The rest of that fork is for processes with several threads, which a zygote is
 * not. */
#define _GNU_SOURCE
#include "batch.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_HANDLERS = 64 };
typedef void (*handler)(void);
static struct { handler before, parent, child; } handlers[MAX_HANDLERS];
static int handler_count;

/* What pthread_atfork of the GNU C library calls. */
__attribute__((visibility("default"))) int __register_atfork(handler before, handler parent, handler child,
                                                             void *library)
{
    int (*next)(handler, handler, handler, void *) = dlsym(RTLD_NEXT, "__register_atfork");
    if (handler_count == MAX_HANDLERS || !next)
        return ENOMEM;
    handlers[handler_count].before = before;
    handlers[handler_count].parent = parent;
    handlers[handler_count++].child = child;
    return next(before, parent, child, library);
}

static int *own_id; /* where the C library keeps the id of the thread */

void note_own_id(void)
{
    if (prctl(PR_GET_TID_ADDRESS, &own_id, 0, 0, 0) < 0)
        own_id = NULL; /* the kernel has no support for checkpoints */
}

pid_t fork_into(int namespaces, int *pidfd)
{
    for (int i = handler_count; i-- > 0;)
        if (handlers[i].before)
            handlers[i].before();
    unsigned long flags = SIGCHLD | CLONE_PIDFD | namespaces;
    if (own_id)
        flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
#if defined(__aarch64__)
    pid_t pid = syscall(SYS_clone, flags, NULL, pidfd, NULL, own_id);
#else
    pid_t pid = syscall(SYS_clone, flags, NULL, pidfd, own_id, NULL);
#endif
    int error = errno;
    for (int i = 0; i < handler_count; i++) {
        handler after = pid ? handlers[i].parent : handlers[i].child;
        if (after)
            after();
    }
    errno = error;
    return pid;
}
