/* Two variables, each with two names: 4 symbols, whose sizes add up to twice the bytes that are there. */
__attribute__((aligned(8))) int counters[4] = {1, 2, 3, 4};            /* .data  16 */
extern int counters_alias[4] __attribute__((alias("counters")));       /* the same 16 bytes, global */

__attribute__((aligned(8))) char buffer[64];                           /* .bss   64 */
extern char buffer_weak_alias[64] __attribute__((weak, alias("buffer"))); /* the same 64 bytes, weak */
