/* The member a_name_longer_than_fifteen.o: its header holds "/0", and its name stands in the member "//". */
__attribute__((aligned(8))) char long_zero[24] = {0}; /* .bss    24 */
__attribute__((aligned(16))) char long_common[40];    /* COMMON  40, aligned to 16 */
