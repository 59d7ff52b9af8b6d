/* Stands for libfreebl3: only libcrypt_like.so needs it, so that it leaves with it. */
struct page { const char *name; char rest[4088]; };
__attribute__((aligned(4096))) const struct page freebl_tables[1] = {{.name = "sha"}}; /* .data.rel.ro 4,096 */
__attribute__((aligned(4096))) int freebl_words[1024] = {1}; /* .data 4,096, written by nobody */
int freebl_hash(int key) { return freebl_tables[0].name[key] + freebl_words[key]; }
