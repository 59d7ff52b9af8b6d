struct pair { int first; long second[4]; };
enum colour { RED, GREEN };
typedef const struct pair *pairs;
static struct pair table[3] = {{1, {2}}, {3, {4}}};
static enum colour shade;
