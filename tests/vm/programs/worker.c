/* Holds 7.5 MiB that it has touched, and two threads that wait. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *wait_in_thread(void *unused)
{
    for (;;)
        pause();
    return unused;
}

int main(void)
{
    size_t size = 7680 << 10;
    volatile char *block = malloc(size);
    pthread_t thread;

    for (size_t i = 0; i < size; i += 512)
        block[i] = 7;
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, NULL, wait_in_thread, NULL);
    wait_in_thread(NULL);
}
