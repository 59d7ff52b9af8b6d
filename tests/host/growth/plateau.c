/* Grows in its warm-up, and then frees what it takes. */
#include "growth.h"
int main(int count, char **words) {
    double start = now(), end = start + atof(words[1]), warm = start + atof(words[2]);
    for (long turn = 0; now() < end; wait_until(start + ++turn * 0.25)) {
        int is_warm = now() >= warm;
        size_t size = is_warm ? 3000 : 400000;
        char *memory = memset(malloc(size), 1, size);
        if (is_warm) free(memory);
    }
}
