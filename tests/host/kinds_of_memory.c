/* Holds memory of one kind, and waits: `kinds_of_memory KIND`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1 << 20)
#define IS(name) (!strcmp(kind, name))

static void hold(void) { for (;;) pause(); }

static int hold_child(void *unused) { hold(); return 0; }

static char *mapped(size_t size, int flags, int file) {
    char *memory = mmap(0, size, PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED) { perror("mmap"); exit(9); }
    return memory;
}

static char *written(char *memory, size_t size) { return memset(memory, 1, size); }

static void fill(int file) {
    static char block[MIB];
    memset(block, 1, MIB);
    for (int i = 0; i < 4; i++) if (write(file, block, MIB) != MIB) exit(8);
    madvise(block, MIB, MADV_DONTNEED);
}

int main(int count, char **words) {
    const char *kind = words[count - 1];
    int file = memfd_create("kind", 0), segment;
    char *memory, *again, name[64];
    if (IS("two processes of one address space")) {
        written(malloc(12 * MIB), 12 * MIB);
        again = malloc(65536);
        clone(hold_child, again + 65000, CLONE_VM | SIGCHLD, 0);
    } else if (IS("a child of vfork that waits")) {
        written(mapped(8 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1), 8 * MIB);
        if (!vfork()) hold();
    } else if (IS("a memfd that is mapped twice")) {
        ftruncate(file, 4 * MIB);
        for (int i = 0; i < 2; i++) written(mapped(4 * MIB, MAP_SHARED, file), 4 * MIB);
    } else if (IS("a memfd of which half is unmapped")) {
        ftruncate(file, 4 * MIB);
        munmap(written(mapped(4 * MIB, MAP_SHARED, file), 4 * MIB), 2 * MIB);
    } else if (IS("a memfd that is mapped private and written")) {
        ftruncate(file, 4 * MIB);
        written(mapped(4 * MIB, MAP_PRIVATE, file), 4 * MIB);
    } else if (IS("a memfd that is filled, mapped by a page and closed")) {
        fill(file);
        *mapped(4 * MIB, MAP_SHARED, file) = 2;
        close(file);
    } else if (IS("a memfd that is read through a private mapping and closed")) {
        fill(file);
        memory = mapped(4 * MIB, MAP_PRIVATE, file);
        for (int i = 0; i < 4 * MIB; i += 4096) *(volatile char *)(memory + i);
        close(file);
    } else if (IS("a memfd that only a child maps")) {
        ftruncate(file, 4 * MIB);
        if (!fork()) { written(mapped(4 * MIB, MAP_SHARED, file), 4 * MIB); hold(); }
        close(file);
    } else if (IS("a file of tmpfs that is deleted and open")) {
        snprintf(name, sizeof name, "/footprint-kinds-%d", getpid());
        fill(shm_open(name, O_RDWR | O_CREAT, 0600));
        shm_unlink(name);
    } else if (IS("a segment of SysV that is attached twice")) {
        segment = shmget(IPC_PRIVATE, 4 * MIB, 0600 | IPC_CREAT);
        memory = shmat(segment, 0, 0), again = shmat(segment, 0, 0);
        shmctl(segment, IPC_RMID, 0);
        written(memory, 4 * MIB), written(again, 4 * MIB);
    } else if (IS("shared memory that a child filled before it ended")) {
        memory = mapped(8 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1);
        if (!fork()) { written(memory, 8 * MIB); _exit(0); }
        wait(0);
    } else {
        return 7;
    }
    hold();
}
