int first_data[10] = {1};
int first_bss[20];
static int first_static[7];
__thread int first_tls[2] = {3};
__thread int first_tbss[5];
const char *const first_relro[] = {"a", "b"};
int second_get(void);
int *first_use(void) { return first_static; }
int first_sum(void) { return first_data[0] + first_bss[2] + first_tls[1] + first_tbss[1] + second_get(); }
