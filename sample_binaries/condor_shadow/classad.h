// The mistake of the audit: a variable defined in a header, one copy for each of the 107 files that include it.
namespace classad {
__attribute__((used)) static int NULL_XACTION = 0; // .bss 4
}
