/* A library that asks for memory through a wrapper of its own. */
#include <stdlib.h>

__attribute__((noinline)) static void *xmalloc(size_t size) {
    void *memory = malloc(size);
    if (memory == NULL) abort();
    return memory;
}

char *table_new(size_t rows) { return xmalloc(rows * 100); }
