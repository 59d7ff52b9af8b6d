/* Stands for libfreebl3: only libunused.so needs it, so that it leaves with it. */
__attribute__((aligned(4096))) int unused_dep_words[1024] = {1}; /* .data 4,096 */
__attribute__((aligned(4096))) char unused_dep_state[16 * 1024]; /* .bss 16,384 */
int unused_dep_salt(void) { return unused_dep_words[0] + unused_dep_state[0]; }
