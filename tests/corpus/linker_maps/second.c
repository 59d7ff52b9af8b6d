int second_data[3] = {1, 2, 3};
int second_common[100];
static volatile char second_static_with_a_name_too_long_for_a_column[3] = {1};
__attribute__((aligned(64))) int second_aligned[3] = {1};
__attribute__((section("own"))) int second_own[2] = {7};
int second_get(void) { return second_data[0] + second_common[1] + second_own[0]; }
void second_set(int n) { second_static_with_a_name_too_long_for_a_column[n] = second_aligned[n]; }
