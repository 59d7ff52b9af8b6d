/* Writes 128 KiB a second into a memfd of its own. */
#include "growth.h"
int main(int count, char **words) {
    double start = now(), end = start + atof(words[1]);
    int file = memfd_create("leak", 0);
    ftruncate(file, 512 << 20);
    char *memory = mmap(0, 512 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (long turn = 0; now() < end; wait_until(start + ++turn * 0.5)) memset(memory + turn * 65536, 1, 65536);
}
