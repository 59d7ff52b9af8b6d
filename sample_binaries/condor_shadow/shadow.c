/* An imitation of condor_shadow: its largest variables with their sizes, and a main that writes them. */
#include "shadow.h"
#include <string.h>
#include <unistd.h>

char ConfigTab[0x1c4];                                  /* .bss   452 */
static char priv_history[0x200];                        /* .bss   512 */
static char CondorEnvironList[0x120] = "_CONDOR_SLOT="; /* .data  288 */

static void set_user(int letter) {
    static char pe_logname[0x100], pe_user[0x100];      /* .bss   256 each */
    memset(pe_logname, letter, sizeof pe_logname);
    memset(pe_user, letter, sizeof pe_user);
}
#ifndef SANS_ANSWERS
char *answer_of_the_schedd(int letter) {
    static char answer[4096];                           /* .bss 4,096, written */
    return memset(answer, letter, sizeof answer);
}
char *answer_that_nobody_asks_for(int letter) {
    static char answer[4096];                           /* .bss 4,096, never written: nothing calls this */
    return memset(answer, letter, sizeof answer);
}
#endif
int main(int argc, char **argv) {
    set_user('u');
    memset(priv_history, 'p', sizeof priv_history);
    memset(ConfigTab, 'c', sizeof ConfigTab);
    memset(CondorEnvironList, 'e', sizeof CondorEnvironList);
    *priv_identifier(0) = 'i';
#ifndef SANS_ANSWERS
    answer_of_the_schedd('a');
#endif
    fill_heap();
    if (argc < 2 || strcmp(argv[1], "--wait") != 0) return 0;
    if (write(1, "ready\n", 6) == 6) pause();
    return 1;
}
