/* Four workers: each writes 32 KiB a second of 30 MiB that it shares since the fork, and as much of a new heap. */
#include "growth.h"
int main(int count, char **words) {
    double start = now(), end = start + atof(words[1]);
    size_t size = 30 << 20;
    char *shared = memset(malloc(size), 1, size);
    for (int worker = 0; worker < 4; worker++) {
        if (fork()) continue;
        for (long turn = 0; now() < end; wait_until(start + ++turn * 0.25)) {
            memset(shared + turn * 8192, 2, 8192);
            memset(malloc(8176), 1, 8176);
        }
        _exit(0);
    }
    while (wait(0) > 0) continue;
}
