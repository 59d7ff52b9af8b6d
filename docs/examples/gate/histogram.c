#include "histogram.h"

static unsigned histogram[256];

unsigned histogram_add(unsigned milliseconds)
{
    return ++histogram[milliseconds % 256];
}

unsigned histogram_total(void)
{
    unsigned total = 0;

    for (unsigned i = 0; i < 256; i++)
        total += histogram[i];
    return total;
}
