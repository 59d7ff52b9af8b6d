/* A heap of one of 20 shapes, and what the program itself knows of it, in one line: the bytes that it asked for, the room
   in its blocks, their number, and with glibc what mallinfo2 counts (arena, hblks, hblkhd, fordblks, fsmblks). */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 100000, THREADS = 3 };
static struct { char *at; size_t size; } blocks[MOST];
static int count;
static volatile int end_count;

static void hold(void *at, size_t size, size_t written) {
    blocks[count].at = memset(at, 1, written);
    blocks[count++].size = size;
}
static void keep(size_t size) { hold(malloc(size), size, size); }
static void keep_many(int number, size_t least, int step, int range) {
    for (int i = 0; i < number; i++) keep(least + i * step % range);
}
static void release(int place) { free(blocks[place].at); blocks[place].at = 0; }
/* Free of each `of` blocks the first `some`. */
static void release_some(int some, int of) {
    for (int i = 0; i < count; i++) if (blocks[i].at && i % of < some) release(i);
}
static void resize(int place, size_t size) {
    blocks[place].size = size;
    blocks[place].at = memset(realloc(blocks[place].at, size), 1, size);
}
static void *fill(void *size) { keep_many(10000, 16, 37, (long)size); return 0; }
static void *fill_and_stay(void *size) { fill(size); end_count++; for (;;) pause(); }
static void in_thread(void *(*work)(void *), long size) {
    pthread_t thread;
    int before = end_count;
    pthread_create(&thread, 0, work, (void *)size);
    if (work == fill) pthread_join(thread, 0);
    else while (end_count == before) usleep(1000);
}

static void small(void) { keep_many(50000, 1, 7, 130); }
static void fragmented(void) { keep_many(80000, 10, 31, 1500); release_some(5, 7); }
static void nearly_all_freed(void) { keep_many(40000, 1000, 0, 1); for (int i = 0; i < count; i++) if (i % 1000) release(i); }
static void large(void) {
    keep_many(150, 3000, 1777, 300000);
    release_some(1, 3);
    for (int i = 1; i < count; i += 3) resize(i, 2 * blocks[i].size);
}
static void zero(void) { keep_many(30000, 0, 0, 1); }
static void ended_threads(void) {
    for (int i = 0; i < THREADS; i++) in_thread(fill, 900);
    release_some(1, 2);
}
static void live_threads(void) {
    for (int i = 0; i < THREADS; i++) in_thread(fill_and_stay, 900);
    release_some(1, 3);
}
static void large_arenas(void) { in_thread(fill_and_stay, 16000); }
static void mapped(void) { keep_many(20, 1000000, 4096, 80000); release_some(1, 4); }
static void cached(void) { keep_many(60000, 1, 8, 1100); release_some(1, 2); }
static void aligned(void) {
    for (int i = 0; i < 3000; i++) hold(aligned_alloc(16 << i % 9, 4096), 4096, 100);
    hold(aligned_alloc(64, 3000000), 3000000, 5000);
    hold(aligned_alloc(1 << 21, 3 << 20), 3 << 20, 5000);
    release_some(1, 2);
}
static void untouched(void) { for (int i = 0; i < 200; i++) hold(malloc(100000), 100000, 10); }
static void zeroed(void) { for (int i = 0; i < 20000; i++) hold(calloc(i % 50 + 1, 30), (i % 50 + 1) * 30, 1); release_some(2, 5); }
static void grown(void) {
    keep_many(300, 100, 0, 1);
    for (int round = 1; round < 9; round++) for (int i = 0; i < count; i++) resize(i, blocks[i].size + 700 * (i % 5));
}
static void shrunk(void) { keep_many(3000, 9000, 0, 1); for (int i = 0; i < count; i++) resize(i, 40 + i % 100); }
static void around_the_threshold(void) { keep_many(200, 120000, 977, 30000); release_some(1, 2); keep_many(100, 120000, 977, 30000); }
static void freed_from_the_end(void) { keep_many(30000, 500, 3, 200); for (int i = count - 1; i >= 1000; i--) release(i); }
static void waves(void) {
    for (int round = 0; round < 6; round++) { keep_many(8000, 20 + 100 * round, 13, 300); release_some(round % 3 + 1, 5); }
}
static void forked(void) { keep_many(40000, 100, 3, 400); release_some(1, 3); if (fork()) for (;;) pause(); }
static void pages(void) { keep_many(2000, 4096, 4096, 65536); release_some(3, 4); }

static const struct { const char *name; void (*make)(void); } shapes[] = {
    {"small", small}, {"fragmented", fragmented}, {"nearly all freed", nearly_all_freed}, {"large", large},
    {"zero", zero}, {"ended threads", ended_threads}, {"live threads", live_threads}, {"large arenas", large_arenas},
    {"mapped", mapped}, {"cached", cached}, {"aligned", aligned}, {"untouched", untouched}, {"zeroed", zeroed},
    {"grown", grown}, {"shrunk", shrunk}, {"around the threshold", around_the_threshold},
    {"freed from the end", freed_from_the_end}, {"waves", waves}, {"forked", forked}, {"pages", pages},
};

int main(int argc, char **argv) {
    size_t asked = 0, usable = 0, number = 0, counts[5] = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) if (!strcmp(argv[1], shapes[i].name)) shapes[i].make();
    for (int i = 0; i < count; i++)
        if (blocks[i].at) { asked += blocks[i].size; usable += malloc_usable_size(blocks[i].at); number++; }
#ifdef MALLINFO
    struct mallinfo2 all = mallinfo2();
    counts[0] = all.arena, counts[1] = all.hblks, counts[2] = all.hblkhd, counts[3] = all.fordblks, counts[4] = all.fsmblks;
#endif
    char text[200];
    int length = snprintf(text, sizeof text, "%d %zu %zu %zu %zu %zu %zu %zu %zu\n", getpid(), asked, usable, number,
                          counts[0], counts[1], counts[2], counts[3], counts[4]);
    write(1, text, length);
    if (argc > 2) _exit(0);
    for (;;) pause();
}
