/* A daemon: it says that it is ready, and counts the lines of its input. */
#include "histogram.h"

#include <stdio.h>
#include <unistd.h>

int main(void)
{
    char line[256];

    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        unsigned same = histogram_add((unsigned)line[0]);

        printf("%u of %u\n", same, histogram_total());
        fflush(stdout);
    }
    for (;;)
        pause(); /* until a signal ends it */
}
