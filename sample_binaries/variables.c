/* The variables of arch_* and of stripped_shared_object: global, static and weak ones.
   Every size is a multiple of 8 and every alignment is 8: a section is as large as the sum of its variables. */
#define AT_8 __attribute__((aligned(8)))
#define WEAK __attribute__((weak))

AT_8 int data_global[16] = {1};           /* .data  64 */
static AT_8 char data_static[24] = "ab";  /* .data  24 */
WEAK AT_8 short data_weak[4] = {1};       /* .data   8 */

AT_8 char bss_global[4096];               /* .bss 4096 */
static AT_8 char bss_static[256];         /* .bss  256 */
WEAK AT_8 char bss_weak[128];             /* .bss  128 */

__thread AT_8 int tdata_global[4] = {1};  /* .tdata 16 */
static __thread AT_8 char tdata_static[8] = "c"; /* .tdata 8 */
__thread AT_8 char tbss_global[512];      /* .tbss 512 */
static __thread AT_8 char tbss_static[64]; /* .tbss 64 */

const void *const relro_table[6] = {      /* .data.rel.ro: 6 pointers, each written by the loader */
    data_static, bss_static, data_static + 8, data_global, data_weak, bss_weak,
};
