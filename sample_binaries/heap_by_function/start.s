# As a program's own start file, without the tables of constructors: there are none.
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
        leaq    main(%rip), %rdi
        call    *__libc_start_main@GOTPCREL(%rip)
        hlt
        .size   _start, . - _start
        .section .note.GNU-stack, "", @progbits
