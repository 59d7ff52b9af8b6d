/* The heap that Massif saw: 84 blocks of 4,080 bytes and one of 464 are 343,184 bytes, with 8 of malloc's own for
   each 335.8 KiB. glibc asks the kernel for 132 KiB at a time, three times: [heap] is 396 KiB. */
#include "shadow.h"
#include <stdlib.h>
#include <string.h>

void fill_heap(void) {
    for (int block = 0; block < 84; block++) memset(malloc(4080), 'h', 4080);
    memset(malloc(464), 'h', 464);
}
