# One label in .data without .size, followed by 48 bytes that are its own, and one with: st_size is 0 and 16.
        .data
        .balign 16
        .globl  unsized
        .type   unsized, @object
unsized:
        .fill   6, 8, 0x1111
        .globl  sized
        .type   sized, @object
        .size   sized, 16
sized:
        .fill   2, 8, 0x2222
        .section .note.GNU-stack, "", @progbits
