/* A const table of 8 pointers: the loader writes each of them, and then makes the page read-only (PT_GNU_RELRO). */
const char *const weekday_names[8] = { /* .data.rel.ro 64 */
    "none", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
};
const int weekday_lengths[8] = {4, 6, 7, 9, 8, 6, 8, 6}; /* .rodata 32: const and without pointers, never written */
__attribute__((aligned(8))) int today[2] = {1, 2};       /* .data 8: writable before and after */
