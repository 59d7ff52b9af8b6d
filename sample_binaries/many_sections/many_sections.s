# 65,400 sections of 4 bytes of .bss each (256 a name), so that section indices go beyond SHN_LORESERVE (0xff00):
# e_shnum is 0, e_shstrndx and st_shndx are SHN_XINDEX, and the true figures stand in section 0 and .symtab_shndx.
        .altmacro
        .macro  one_section name, which
        .section .bss.many_&name, "aw", @nobits, unique, \which
        .zero   4
        .endm
        .set    .Lnumber, 0
        .rept   65400
        one_section %(.Lnumber/256), %(.Lnumber%256)
        .set    .Lnumber, .Lnumber + 1
        .endr
        .macro  variable label, name, which
        .section .bss.many_&name, "aw", @nobits, unique, \which
        .globl  \label
        .type   \label, @object
        .size   \label, 4
        .subsection -1
\label:
        .endm
        variable in_first_section, 0, 0
        variable in_last_section, %(65399/256), %(65399%256)
        .section .note.GNU-stack, "", @progbits
