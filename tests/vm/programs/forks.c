/* Touches 8 MiB, forks three children that wait, and has all of it swapped out, in each process. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    size_t size = 8 << 20;
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    madvise(block, size, MADV_NOHUGEPAGE);
    /* Different pages: equal ones would be compressed or merged. */
    for (size_t place = 0; place < size; place += 64)
        *(size_t *)(block + place) = place * 2654435761u;
    for (int i = 0; i < 3; i++)
        if (fork() == 0)
            for (;;)
                pause();
    for (;;)
        pause();
}
