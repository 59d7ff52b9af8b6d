#include <stdlib.h>
#include <string.h>
static char *kept[60];
static inline __attribute__((always_inline)) char *filled(size_t size) { return memset(malloc(size), 1, size); }
__attribute__((noinline)) char *make(size_t size) { return filled(size); }
int main(void)
{
    for (int i = 0; i < 50; i++) kept[i] = make(1000);
    for (int i = 0; i < 25; i++) free(kept[i]);
    char *copy = memcpy(make(7777), kept[30], 1000);
    return copy[0] - 1;
}
