#include "shared.h"
pairs read_first(int i) { static int calls; calls++; shade = GREEN; return &table[i % 3]; }
__thread long depth;
