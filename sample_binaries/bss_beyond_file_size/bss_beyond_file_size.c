/* 16 pages of .bss after 8 bytes of .data: the writable segment is 65,536 bytes longer in memory than in the file. */
__attribute__((aligned(8))) char beginning[8] = "in file"; /* .data     8 */
__attribute__((aligned(8))) char beyond_file[65536];       /* .bss 65,536 */
