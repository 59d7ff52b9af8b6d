// A function-local static of C++: its linker name is mangled, _ZZ15priv_identifierE2id.
extern "C" char *priv_identifier(int) {
    static char id[0x100]; // .bss 256
    return id;
}
