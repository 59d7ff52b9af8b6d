# What a program's own start file holds, but asking for no symbol newer than glibc 2.2.5.
        .symver __libc_start_main, __libc_start_main@GLIBC_2.2.5
        .text
        .globl  _start
        .type   _start, @function
_start:
        xorl    %ebp, %ebp
        movq    %rdx, %r9               # rtld_fini
        popq    %rsi                    # argc
        movq    %rsp, %rdx              # argv
        andq    $-16, %rsp
        pushq   %rax
        pushq   %rsp                    # stack_end
        xorl    %r8d, %r8d              # no fini
        xorl    %ecx, %ecx              # no init
        movl    $main, %edi
        call    __libc_start_main
        hlt
        .size   _start, . - _start
        .data
        .globl  __data_start
        .weak   data_start
__data_start:
data_start:
        .long   0
        .section .note.GNU-stack, "", @progbits
