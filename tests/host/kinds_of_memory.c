/* Holds memory of one kind, and waits: `kinds_of_memory KIND`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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
    unsigned long context = 0;
    char *memory, *again, name[64];
    struct io_uring_params ring = {0};
    union bpf_attr array = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4096, .max_entries = 1024,
        .map_flags = BPF_F_MMAPABLE,
    };
    struct tpacket_req packets = {
        .tp_block_size = 65536, .tp_block_nr = 128, .tp_frame_size = 2048, .tp_frame_nr = 4096,
    };
    struct perf_event_attr event = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_DUMMY,
    };
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
    } else if (IS("rings of io_uring")) {
        file = syscall(SYS_io_uring_setup, 16384, &ring);
        if (file < 0) exit(7);
        mapped(ring.cq_off.cqes + ring.cq_entries * sizeof(struct io_uring_cqe), MAP_SHARED | MAP_POPULATE, file);
        if (mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, IORING_OFF_SQES) == MAP_FAILED) exit(7);
    } else if (IS("an array of BPF that is mapped") || IS("an array of BPF that is mapped and closed")) {
        file = syscall(SYS_bpf, BPF_MAP_CREATE, &array, sizeof array);
        if (file < 0) exit(7);
        written(mapped(4 * MIB, MAP_SHARED, file), 4 * MIB);
        if (IS("an array of BPF that is mapped and closed")) close(file);
    } else if (IS("a ring of packets of 8 MiB")) {
        file = socket(AF_PACKET, SOCK_RAW, 0);
        if (setsockopt(file, SOL_PACKET, PACKET_RX_RING, &packets, sizeof packets)) exit(7);
        mapped(8 * MIB, MAP_SHARED, file);
    } else if (IS("a ring of perf of 257 pages")) {
        mapped(257 * 4096, MAP_SHARED, syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
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
    } else if (IS("small memfds that are mapped and closed")) {
        for (int i = 0; i < 500; i++) {
            file = memfd_create("small", 0), ftruncate(file, 4096);
            *mapped(4096, MAP_SHARED, file) = 1;
            close(file);
        }
    } else if (IS("a ring of aio")) {
        if (syscall(SYS_io_setup, 16384, &context)) exit(7);
    } else if (IS("a memfd that only siblings map")) {
        ftruncate(file, 32 * MIB);
        for (int i = 0; i < 2; i++)
            if (!fork()) { written(mapped(32 * MIB, MAP_SHARED, file), 32 * MIB); close(file); hold(); }
        close(file);
    } else {
        return 7;
    }
    hold();
}
