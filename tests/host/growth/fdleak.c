/* Opens a socket pair with 64 KiB of unread data each quarter of a second. */
#include "growth.h"
int main(int count, char **words) {
    double start = now(), end = start + atof(words[1]);
    static char data[65536] = {1};
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){60000, 60000});
    for (long turn = 0; now() < end; wait_until(start + ++turn * 0.25)) {
        int pair[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        write(pair[0], data, sizeof data);
    }
}
