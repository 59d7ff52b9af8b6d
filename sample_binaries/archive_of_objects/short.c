/* The member short.o: its name stands in its header. */
__attribute__((aligned(8))) int short_data[4] = {1}; /* .data 16 */
