/* Takes memory, a mebibyte at a time, up to so many mebibytes; then waits for so many seconds. The third number is how
   many milliseconds it takes for a mebibyte. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words)
{
    int most = count > 1 ? atoi(words[1]) : 1024;
    int pace = count > 3 ? atoi(words[3]) : 2;

    for (int i = 0; i < most; i++) {
        volatile char *block = malloc(1 << 20);

        for (int place = 0; place < 1 << 20; place += 512)
            block[place] = 7;
        usleep(pace * 1000);
    }
    sleep(count > 2 ? atoi(words[2]) : 0);
}
