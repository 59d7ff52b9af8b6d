/* Starts two threads a second, each of which touches two pages of its stack: its own, and that of the C library. */
#include "growth.h"
static void *wait_for_ever(void *none) {
    pause();
    return none;
}
int main(int count, char **words) {
    double start = now(), end = start + atof(words[1]);
    for (long turn = 0; now() < end; wait_until(start + ++turn * 0.5)) {
        pthread_t thread;
        pthread_create(&thread, 0, wait_for_ever, 0);
    }
    _exit(0);
}
