/* Needs libcrypt_like.so by name and calls nothing of it. Without a C library: it is as small on every system. */
static long call(long number, long first, long second, long third) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(first), "S"(second), "d"(third) : "rcx", "r11", "memory");
    return result;
}
void _start(void) {
    call(1, 1, (long)"ready\n", 6); /* write */
    call(60, 0, 0, 0);              /* exit */
}
