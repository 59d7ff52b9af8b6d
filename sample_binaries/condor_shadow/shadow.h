/* What the files of the shadow know of each other. */
char *priv_identifier(int state); /* uids.cpp */
void fill_heap(void);             /* heap.c */
