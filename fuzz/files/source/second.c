#include "shared.h"
pairs read_second(int i) { static int calls; calls += i; return shade ? &table[1] : 0; }
char buffer[100];
