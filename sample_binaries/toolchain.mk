# What the folders have in common. A folder sets FILES, MACHINE where it is not x86_64, NEEDS where the bare compiler is
# not enough (cc1plus, libc.so), and then includes this file.
# Everything that could differ between two compilers' defaults is said here, and nothing of the place or the time of the
# build gets into a file.

export LC_ALL := C
OUT ?= ../build/$(notdir $(CURDIR))
MACHINE ?= x86_64
CC := $(firstword $(foreach name,$(MACHINE)-linux-gnu-gcc gcc,\
  $(if $(filter $(MACHINE)-%,$(shell $(name) -dumpmachine 2>/dev/null)),$(name))))
AR := $(CC:gcc=ar)
MISSING := $(if $(CC),$(filter $(NEEDS),\
  $(shell $(CC) -print-prog-name=cc1plus) $(shell $(CC) -print-file-name=libc.so)),$(MACHINE)-linux-gnu-gcc)

# Variables stand in the order of the source, and those that nothing uses stay (-fno-toplevel-reorder).
CFLAGS := -O1 -Wall -Wno-unused-variable -fno-toplevel-reorder -fno-common -fno-ident -fno-lto \
  -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-stack-protector '-ffile-prefix-map=$(CURDIR)=.' -Wa,--noexecstack
ifeq ($(MACHINE),x86_64)
CFLAGS += -fcf-protection=none -Wa,-mx86-used-note=no
endif
LINKED := -fuse-ld=bfd -nostdlib -Wl,--build-id=sha1,--hash-style=gnu,-z,noexecstack,-z,noseparate-code \
  -Wl,-z,max-page-size=4096,-z,common-page-size=4096
SHARED := -fPIC -shared $(LINKED) -Wl,-z,relro,-z,now

.DELETE_ON_ERROR:
.PHONY: all
ifneq ($(MISSING),)
all:
	@echo "$(notdir $(CURDIR)): skipped, there is no $(MISSING) here"
else
all: $(addprefix $(OUT)/,$(FILES))
endif

$(OUT):
	@mkdir -p $@
