/* 100,000 bytes of the program and 50,000 of its library are in use at the end, and 30,000 more before. */
#include <stdlib.h>
#include <string.h>

char *table_new(size_t rows); /* of libtable.so */

/* Inlined into its caller, whose memory it is. */
static inline __attribute__((always_inline)) char *filled(size_t size) { return memset(malloc(size), 1, size); }

/* A table that is filled once at start: a block of 800 bytes, and 100 of 992. */
__attribute__((noinline)) static char **load_parameters(void) {
    char **all = malloc(100 * sizeof *all);
    for (int number = 0; number < 100; number++) all[number] = filled(992);
    return all;
}

__attribute__((noinline)) static int parse_file(void) {
    char *file = filled(30000);
    int first = file[0];
    free(file);
    return first;
}

int main(void) {
    char **parameters = load_parameters();
    char *table = table_new(500);
    table[0] = parameters[99][0];
    return parse_file() - table[0];
}
