"""Heap profiles of Valgrind, heaptrack, pprof, jemalloc and others: bytes in, one `Profile` out; no file is opened."""
