/* Allocates in one of four ways, and prints what its allocator counts: live, overhead and free bytes, as JSON. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 200000, THREADS = 4 };

static char *blocks[MOST];
static unsigned sizes[MOST];
static pthread_barrier_t all_done, all_end;

/* Fill a range of the table with blocks, and free all but each `kept`-th one. */
static void fill(int first, int past, unsigned least, unsigned range, int kept) {
    for (int i = first; i < past; i++) {
        sizes[i] = least + i % range;
        blocks[i] = memset(malloc(sizes[i]), 1, sizes[i]);
    }
    for (int i = first; i < past; i++)
        if (i % kept) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
}

static void *work(void *number) {
    int first = (int)(long)number * (MOST / THREADS);
    fill(first, first + MOST / THREADS, 300, 201, 4);
    pthread_barrier_wait(&all_done);
    pthread_barrier_wait(&all_end);
    return NULL;
}

static size_t counted(int (*ctl)(const char *, void *, size_t *, void *, size_t), const char *name) {
    size_t value = 0, size_bytes = sizeof value;
    ctl(name, &value, &size_bytes, NULL, 0);
    return value;
}

static void tell(size_t header_bytes) {
    size_t live = 0, used = 0, freed = 0;
    for (int i = 0; i < MOST; i++)
        if (blocks[i]) {
            live += sizes[i];
            used += malloc_usable_size(blocks[i]) + header_bytes;
            if (header_bytes && sizes[i] >= 128 << 10) used += header_bytes; /* glibc maps it: two words */
        } else {
            freed += sizes[i];
        }
    struct mallinfo2 glibc = mallinfo2();
    size_t allocator_free = glibc.fordblks;
    int (*ctl)(const char *, void *, size_t *, void *, size_t) = dlsym(RTLD_DEFAULT, "mallctl");
    if (ctl) {
        size_t epoch = 1;
        ctl("epoch", NULL, NULL, &epoch, sizeof epoch);
        allocator_free = counted(ctl, "stats.active") - counted(ctl, "stats.allocated");
    }
    int (*property)(const char *, size_t *) = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    if (property) {
        size_t heap = 0, unmapped = 0;
        property("generic.heap_size", &heap);
        property("tcmalloc.pageheap_unmapped_bytes", &unmapped);
        allocator_free = heap - unmapped - used; /* with what is left of pages that are divided into blocks */
    }
    printf("{\"live\": %zu, \"overhead\": %zu, \"free\": %zu, \"freed\": %zu, \"mapped\": %zu}\n", live, used - live,
           allocator_free, freed, glibc.hblkhd);
    fflush(stdout);
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "fragmented";
    size_t header_bytes = count > 2 ? 0 : sizeof(size_t); /* a second word: not the allocator of glibc */
    pthread_t threads[THREADS];
    int has_threads = !strcmp(way, "threads");
    if (!strcmp(way, "freed")) {
        fill(0, MOST, 300, 201, 50);
    } else if (!strcmp(way, "mapped")) {
        fill(0, 40, 1000000, 1, 1);
        fill(40, MOST / 2, 300, 201, 4);
    } else if (has_threads) {
        pthread_barrier_init(&all_done, NULL, THREADS + 1);
        pthread_barrier_init(&all_end, NULL, THREADS + 1);
        for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
        pthread_barrier_wait(&all_done);
    } else {
        fill(0, MOST, 300, 201, 4);
    }
    tell(header_bytes);
    getchar();
    if (has_threads) {
        pthread_barrier_wait(&all_end);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    return 0;
}
