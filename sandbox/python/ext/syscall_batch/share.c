/* Moves the memory of the zygote into a sealed file in memory, of which the zygote and its children have private mappings.
 *
 * A child then shares the pages that it only reads, and copies those that it writes to, as after any fork. A fork copies no
 * page-table entries of the data of libraries, most of which no child uses: those that do get them at the first use. The
 * heap and Python's arenas are on huge pages of the file, of which a fork copies, and an exit frees, many page-table entries
 * at once. Nobody can write to the file. */
#define _GNU_SOURCE
#include "batch.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_RANGES = 8192, HUGE_PAGE_BYTES = 2 << 20, PAGE_BYTES = 4096 };

static struct range {
    uintptr_t from, to;
    int protection;
    int hot; /* most children use it */
} ranges[MAX_RANGES]; /* Python's arenas; when they are shared, also the other memory */
static int range_count;
static uintptr_t heap_start; /* of the memory that malloc gets from brk */

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
        if (joined && last->to == ranges[i].from && last->protection == ranges[i].protection && last->hot == ranges[i].hot)
            last->to = ranges[i].to;
        else
            ranges[joined++] = ranges[i];
    }
    range_count = joined;
}

/* Returns the first offset in the file, from at on, that is as far into a huge page as the address. */
static uintptr_t offset_for(uintptr_t at, uintptr_t address) { return at + (address - at) % HUGE_PAGE_BYTES; }

/* Maps a range from the file, to which it was copied, at this offset. */
static void map_range(struct range range, int fd, uintptr_t offset)
{
    size_t size = range.to - range.from;
    if (mmap((void *)range.from, size, range.protection, MAP_PRIVATE | MAP_FIXED, fd, offset) == MAP_FAILED)
        return;
    for (uintptr_t from = range.from; range.hot && from < range.to; from = (from / HUGE_PAGE_BYTES + 1) * HUGE_PAGE_BYTES) {
        volatile char *first = (char *)from;
        *first = *first; /* a fork only copies the page-table entries of a mapping with a copied page, and not of whole huge pages */
    }
    /* This makes these entries. Also, the service counts these pages as the zygote's. */
    madvise((void *)range.from, size, MADV_POPULATE_READ);
}

/* Moves the heap, Python's arenas and the data of the program and its libraries, as far as the kernel allows. It calls no
 * function that allocates memory, and writes to no memory but the stack once it copies. */
void share_memory(void)
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
    if (space != MAP_FAILED && mmap(view, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED) {
        uintptr_t offset = 0;
        for (int i = 0; i < range_count; i++) {
            struct range each = ranges[i];
            offset = offset_for(offset, each.from);
            memcpy(view + offset, (void *)each.from, each.to - each.from);
            if (each.hot) {
                uintptr_t first = offset / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
                madvise(view + first, offset + each.to - each.from - first, 25 /* MADV_COLLAPSE, since Linux 6.1 */);
            }
            map_range(each, fd, offset);
            offset += each.to - each.from;
        }
    }
    if (space != MAP_FAILED)
        munmap(space, reserved);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        _exit(71);
    close(fd);
}
