// Keeps and leaks blocks of known sizes: traced by mtrace, written by malloc_info, found by LeakSanitizer.
#include <malloc.h>
#include <mcheck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *kept[100];

__attribute__((noinline)) void *make(int size) {
    char *block = malloc(size);
    memset(block, 1, size);
    return block;
}

__attribute__((noinline)) void leak(void) {
    for (int i = 0; i < 10; i++) make(100);
}

int main(int count, char **words) {
    mtrace();
    for (int i = 0; i < 50; i++) kept[i] = make(1000);
    for (int i = 0; i < 25; i++) {
        free(kept[i]);
        kept[i] = NULL;
    }
    kept[60] = realloc(kept[30], 5000);
    kept[30] = NULL;
    kept[61] = calloc(1, 300000);
    leak();
    if (count > 1) {
        FILE *file = fopen(words[1], "w");
        setvbuf(file, NULL, _IONBF, 0);
        struct mallinfo2 info = mallinfo2();
        malloc_info(0, file);
        fclose(file);
        printf("%zu %zu\n", info.uordblks, info.hblkhd);
    }
    memset(kept, 0, sizeof kept);
    return 0;
}
