#include "header.h"
int shared_counter = 1;
static int same_name[8];
int use_one(int n) {
    static int calls[4];
    header_counters[n & 15]++;
    header_thread[n & 7]++;
    header_pairs[n & 1].value += n;
    same_name[n & 7] += ++calls[n & 3];
    return *header_names[n & 3] + header_counters[n & 7] + same_name[n & 3] + header_pairs[n & 1].value + (int)header_thread[n & 3] + shared_counter;
}
