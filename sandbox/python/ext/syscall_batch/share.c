/* Moves the memory of the zygote into a sealed file, of which the zygote and its children have private mappings.
 *
 * A child then shares the pages that it only reads, and copies those that it writes to, as after any fork. A copy that
 * is equal to its page of the file again can be given back, which the kernel cannot do without a file. Nobody can write
 * to the file.
 *
 * A fork copies no page-table entries of the file: a child gets them, 16 at once, when it uses a page. A session with a
 * DataFrame uses a third of them. If forks copied all, a fork and the end of a child would take 0.5 ms more each.
 *
 * On huge pages of the file a fork copies, and an exit frees, many page-table entries at once. So forks copy those of
 * the memory that most children use. But the kernel, when it looks for the users of a page, as for reclaim or access
 * monitoring, goes through all entries of a huge page in all children, and meanwhile none can be forked. So a zygote
 * with thousands of children must have small pages. */
#define _GNU_SOURCE
#include "batch.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_RANGES = 8192, HUGE_PAGE_BYTES = 2 << 20, PAGE_BYTES = 4096 };
enum { COLLAPSE = 25 /* MADV_COLLAPSE, since Linux 6.1 */, EXIT_NOT_SEALED = 71 };

static struct range {
    uintptr_t from, to;
    int protection;
    int hot; /* most children use it */
} ranges[MAX_RANGES]; /* Python's arenas; when they are shared, also the other memory */
static int range_count;
static uintptr_t heap_start; /* of the memory that malloc gets from brk */
static char *file_view = MAP_FAILED; /* a mapping of the file, which can only be read, and from which none is read */
static size_t file_bytes;

void note_heap_start(void) { heap_start = (uintptr_t)sbrk(0); }

static void add_range(uintptr_t from, uintptr_t to, int protection, int hot)
{
    if (from < to && range_count < MAX_RANGES)
        ranges[range_count++] = (struct range){from, to, protection, hot};
}

void note_arena(void *at, size_t size) { add_range((uintptr_t)at, (uintptr_t)at + size, PROT_READ | PROT_WRITE, 1); }

void forget_arena(void *at)
{
    for (int i = 0; i < range_count; i++)
        if (ranges[i].from == (uintptr_t)at) {
            ranges[i] = ranges[--range_count];
            return;
        }
}

static uintptr_t page_of(uintptr_t at) { return at & -PAGE_BYTES; }
static uintptr_t page_end(uintptr_t at) { return page_of(at + PAGE_BYTES - 1); }

/* Adds the data of a program or library: first the part that the loader has made read-only. */
static int add_data(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    uintptr_t fixed_from = 0, fixed_to = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_GNU_RELRO) {
            fixed_from = page_of(info->dlpi_addr + part->p_vaddr);
            fixed_to = page_of(info->dlpi_addr + part->p_vaddr + part->p_memsz);
        }
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t from = page_of(info->dlpi_addr + part->p_vaddr);
        uintptr_t to = page_end(info->dlpi_addr + part->p_vaddr + part->p_memsz);
        if (part->p_type != PT_LOAD || part->p_flags != (PF_R | PF_W))
            continue;
        if (fixed_from == from && fixed_to <= to) {
            add_range(from, fixed_to, PROT_READ, 0);
            from = fixed_to;
        }
        add_range(from, to, PROT_READ | PROT_WRITE, !*info->dlpi_name /* the program's own */);
    }
    return 0;
}

/* Sorts the ranges, and joins those that follow each other. */
static void sort_ranges(void)
{
    for (int i = 1; i < range_count; i++) {
        struct range each = ranges[i];
        int j = i;
        for (; j > 0 && ranges[j - 1].from > each.from; j--)
            ranges[j] = ranges[j - 1];
        ranges[j] = each;
    }
    int joined = 0;
    for (int i = 0; i < range_count; i++) {
        struct range *last = &ranges[joined - 1];
        if (joined && last->to == ranges[i].from && last->protection == ranges[i].protection
            && last->hot == ranges[i].hot)
            last->to = ranges[i].to;
        else
            ranges[joined++] = ranges[i];
    }
    range_count = joined;
}

/* Returns the first offset in the file, from at on, that is as far into a huge page as the address. */
static uintptr_t offset_for(uintptr_t at, uintptr_t address) { return at + (address - at) % HUGE_PAGE_BYTES; }

/* Maps a range from the file, to which it was copied, at this offset. */
static void map_range(struct range range, int fd, uintptr_t offset, int on_huge_pages)
{
    size_t size = range.to - range.from;
    if (mmap((void *)range.from, size, range.protection, MAP_PRIVATE | MAP_FIXED, fd, offset) == MAP_FAILED)
        return;
    uintptr_t at = on_huge_pages ? range.from : range.to;
    for (; at < range.to; at = (at / HUGE_PAGE_BYTES + 1) * HUGE_PAGE_BYTES) {
        /* A fork copies the page-table entries only of a mapping with a copied page, and not those of a huge page. */
        volatile char *first = (char *)at;
        *first = *first;
    }
    /* This makes the entries of the zygote. Also, the service counts these pages as the zygote's. */
    madvise((void *)range.from, size, MADV_POPULATE_READ);
}

/* Moves the heap, Python's arenas and the data of the program and its libraries, as far as the kernel allows. It
 * calls no function that allocates memory, and writes to no memory but the stack once it copies. */
void share_memory(int use_huge_pages)
{
    if (!heap_start)
        return;
    add_range(page_end(heap_start), page_of((uintptr_t)sbrk(0)), PROT_READ | PROT_WRITE, 1);
    dl_iterate_phdr(add_data, NULL);
    sort_ranges();
    uintptr_t size = 0;
    for (int i = 0; i < range_count; i++)
        size = offset_for(size, ranges[i].from) + ranges[i].to - ranges[i].from;
    int fd = memfd_create("zygote", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return;
    size_t reserved = size + HUGE_PAGE_BYTES;
    char *space = MAP_FAILED;
    if (ftruncate(fd, size) == 0)
        space = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *view = space + -(uintptr_t)space % HUGE_PAGE_BYTES;
    if (space != MAP_FAILED
        && mmap(view, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED) {
        uintptr_t offset = 0;
        for (int i = 0; i < range_count; i++) {
            struct range each = ranges[i];
            offset = offset_for(offset, each.from);
            memcpy(view + offset, (void *)each.from, each.to - each.from);
            int on_huge_pages = each.hot && use_huge_pages;
            if (on_huge_pages) {
                uintptr_t first = offset / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
                madvise(view + first, offset + each.to - each.from - first, COLLAPSE);
            }
            map_range(each, fd, offset, on_huge_pages);
            offset += each.to - each.from;
        }
    }
    if (space != MAP_FAILED)
        munmap(space, reserved);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        _exit(EXIT_NOT_SEALED);
    file_view = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0); /* fails before Linux 6.7 */
    file_bytes = size;
    close(fd);
}

/* Gives back the pages of a run of copied pages that are equal to those of the file, and returns their number. */
static long give_back_run(char *first, const char *original, int count)
{
    long given = 0;
    for (int i = 0, equal = 0; i <= count; i++) { /* the pages from equal to i are equal */
        if (i < count && !memcmp(first + i * PAGE_BYTES, original + i * PAGE_BYTES, PAGE_BYTES))
            continue;
        if (equal < i && !madvise(first + equal * PAGE_BYTES, (i - equal) * PAGE_BYTES, MADV_DONTNEED))
            given += i - equal;
        equal = i + 1;
    }
    return given;
}

/* give_back(copies): copies are copied pages: the address of a mapping (8 bytes), the page of the file with which it
 * begins (4), its number of runs (4), and for each run its first page in the mapping (2) and its number of pages (2);
 * then the next mapping. The process must have one thread. */
PyObject *give_back(PyObject *module, PyObject *args)
{
    Py_buffer copies;
    if (!PyArg_ParseTuple(args, "y*", &copies))
        return NULL;
    long given = 0;
    char *view = file_view == MAP_FAILED ? MAP_FAILED : mremap(file_view, 0, file_bytes, MREMAP_MAYMOVE);
    uint64_t all = ~0ull, before;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof all); /* a handler could write to a page */
    const char *at = copies.buf, *end = at + copies.len;
    while (view != MAP_FAILED && end - at >= 16) {
        uint64_t mapping;
        uint32_t file_page, runs;
        memcpy(&mapping, at, 8), memcpy(&file_page, at + 8, 4), memcpy(&runs, at + 12, 4);
        for (at += 16; runs && end - at >= 4; runs--, at += 4) {
            uint16_t run[2];
            memcpy(run, at, 4);
            size_t first = (size_t)run[0] * PAGE_BYTES, offset = (size_t)file_page * PAGE_BYTES + first;
            if (offset + (size_t)run[1] * PAGE_BYTES <= file_bytes)
                given += give_back_run((char *)mapping + first, view + offset, run[1]);
        }
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    if (view != MAP_FAILED)
        munmap(view, file_bytes); /* with its page tables, which a view that stays would keep */
    PyBuffer_Release(&copies);
    return PyLong_FromLong(given);
}
