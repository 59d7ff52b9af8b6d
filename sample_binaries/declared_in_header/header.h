/* What a header defines exists once for each source file that includes it, unless the compiler drops it. */
#pragma once
static int header_counters[16];
static const char *const header_names[4] = {"north", "east", "south", "west"};
static const int header_unused[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static __thread long header_thread[8] = {1};
struct pair { int value; struct pair *next; };
static struct pair header_pairs[2];
extern int shared_counter;
