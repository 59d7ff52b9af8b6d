/* Stands for libcrypt: two pages that the loader writes, and 60 KiB of .bss that nobody does; none binds to it. */
extern int freebl_hash(int);
struct page { const char *name; char rest[4088]; };
__attribute__((aligned(4096))) const struct page crypt_tables[2] = {{.name = "des"}, {.name = "md5"}}; /* .data.rel.ro */
__attribute__((aligned(4096))) char crypt_state[60 * 1024]; /* .bss 61,440 */
int crypt_like(int key) { return crypt_tables[key].name[0] + crypt_state[key] + freebl_hash(key); }
