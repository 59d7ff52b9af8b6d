/* .tbss has a size and an address and takes no address space: what follows it begins at that same address. */
__thread __attribute__((aligned(16))) char tdata_first[16] = "first";  /* .tdata   16, offset  0 */
__thread __attribute__((aligned(16))) char tdata_second[32] = "second"; /* .tdata  32, offset 16 */
__thread __attribute__((aligned(16))) char tbss_large[4096];           /* .tbss 4,096, offset 48 */
static __thread __attribute__((aligned(16))) char tbss_static[64];     /* .tbss    64, offset 4,144 */

__attribute__((aligned(8))) int after[2] = {1};                        /* .data 8 */
__attribute__((aligned(16))) void *const follows_tbss[2] = {&after, after + 1}; /* .data.rel.ro 16, where .tbss lies */
