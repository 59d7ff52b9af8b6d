/* Two threads, each of whose stacks lies right below memory that the program maps: the kernel merges them where it can. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *wait_in_thread(void *unused)
{
    for (;;)
        pause();
    return unused;
}

int main(void)
{
    size_t stack = 1 << 20, heap = 30 << 20;
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        char *both = mmap(NULL, stack + heap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        pthread_attr_t attributes;

        madvise(both, stack + heap, MADV_NOHUGEPAGE);
        memset(both + stack, 7, heap);
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, both, stack);
        pthread_create(&thread, &attributes, wait_in_thread, NULL);
    }
    wait_in_thread(NULL);
}
