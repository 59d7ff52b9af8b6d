/* Stands for libcrypt: 156 KiB of .bss behind a page of .data, and a page that the loader writes; none binds to it. */
extern int unused_dep_salt(void);
__attribute__((aligned(4096))) int unused_boxes[1024] = {1}; /* .data 4,096 */
__attribute__((aligned(4096))) char unused_state[156 * 1024]; /* .bss 159,744 */
const char *const unused_ciphers[4] = {"des", "md5", "sha256", "sha512"}; /* .data.rel.ro 32 */
int unused_crypt(int key) { return unused_boxes[key] + unused_state[key] + unused_dep_salt(); }
