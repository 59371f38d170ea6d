/* The memory of Python's small objects, in huge pages.
 *
 * The zygote is started with this library in LD_PRELOAD, so that Python takes its first arenas from here. Two arenas fill a
 * huge page. A fork copies one page-table entry for a huge page, and 512 for the same memory in small pages. */
#include "batch.h"

#include <sys/mman.h>

enum { ARENA_BYTES = 1 << 20, HUGE_PAGE_BYTES = 2 * ARENA_BYTES };

static char *second_half; /* the free half of the last huge page, or NULL */

static void *allocate_arena(void *context, size_t size)
{
    (void)context;
    char *got = size == ARENA_BYTES ? second_half : NULL;
    if (got) {
        second_half = NULL;
        note_arena(got, size);
        return got;
    }
    size_t mapped = size == ARENA_BYTES ? 2 * HUGE_PAGE_BYTES : size;
    got = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return NULL;
    if (size != ARENA_BYTES)
        return got;
    size_t before = -(uintptr_t)got % HUGE_PAGE_BYTES; /* bytes up to the next huge page */
    if (before)
        munmap(got, before);
    if (before < HUGE_PAGE_BYTES)
        munmap(got + before + HUGE_PAGE_BYTES, HUGE_PAGE_BYTES - before);
    second_half = got + before + ARENA_BYTES;
    note_arena(got + before, size);
    return got + before;
}

static void free_arena(void *context, void *at, size_t size)
{
    (void)context;
    forget_arena(at);
    munmap(at, size);
}

__attribute__((constructor)) static void use_huge_arenas(void)
{
    PyObjectArenaAllocator allocator = {NULL, allocate_arena, free_arena};
    if (Py_IsInitialized())
        return;
    PyObject_SetArenaAllocator(&allocator);
    note_heap_start();
}
