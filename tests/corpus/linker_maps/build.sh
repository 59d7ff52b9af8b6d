#!/bin/sh
# Links two objects, one of them from an archive, with each linker that is here, and keeps what each says of it.
set -e
flags="-Os -fPIC -fcommon -fno-asynchronous-unwind-tables"
for bits in 64 32; do
  gcc -m$bits $flags -c first.c && gcc -m$bits $flags -fdata-sections -c second.c
  rm -f libsecond.a && ar rcD libsecond.a second.o
  test $bits = 64 && emulation=elf_x86_64 || emulation=elf_i386
  for linker in bfd gold lld mold; do
    program=ld.$linker
    test $linker = mold && program=mold
    options="-shared -m $emulation --build-id=none"
    test $linker = gold || options="$options -z noseparate-code"
    $program $options -Map=$linker-$bits.map first.o libsecond.a -o $linker-$bits.so
  done
done
rm first.o second.o libsecond.a
