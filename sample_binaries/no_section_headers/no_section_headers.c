/* Its program headers say all that a loader needs; nothing says where .data ends and .bss begins but p_filesz. */
__attribute__((aligned(8))) int kept_data[16] = {1}; /* 64 bytes in the file */
__attribute__((aligned(8))) char kept_zero[8192];    /* 8,192 bytes beyond it */
void *const kept_pointer = &kept_data;               /* 8 bytes, written by the loader, then read-only */
