/* Tentative definitions under -fcommon: no section holds them until a linker gives them a place in .bss. */
__attribute__((aligned(4))) int common_small;           /* COMMON    4, aligned to  4 */
__attribute__((aligned(64))) char common_large[1000];   /* COMMON 1000, aligned to 64 */
__attribute__((aligned(8))) int defined_data[2] = {1};  /* .data     8 */
__attribute__((aligned(8))) int defined_zero[2] = {0};  /* .bss      8: an initializer makes it a definition */
