/* Counts how often each duration in milliseconds came. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

unsigned histogram_add(unsigned milliseconds);
unsigned histogram_total(void);

#endif
