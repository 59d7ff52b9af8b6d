/* A server that costs more than it needs: `make check` knows how much it may. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef CONNECTIONS
#define CONNECTIONS 64
#endif

struct connection {
    int descriptor;
    char received[1020];
};

/* Each process pays for all of them, whether anybody connects or not. */
struct connection connections[CONNECTIONS];
char const *const greetings[] = {"hello", "good day"};

int main(void) {
    for (int i = 0; i < CONNECTIONS; i++)
        connections[i].descriptor = -1;
    puts(greetings[0]);
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
