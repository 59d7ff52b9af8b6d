/* Allocates and frees, prints what mallinfo2 says of it, and waits. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    char *blocks[2000];

    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 2000; i++)
        memset(blocks[i] = malloc(1000 + i), 7, 1000 + i);
    for (int i = 0; i < 2000; i += 2)
        free(blocks[i]);
    struct mallinfo2 now = mallinfo2();
    printf("%zu %zu %zu\n", now.uordblks, now.fordblks, now.arena);
    pause();
}
