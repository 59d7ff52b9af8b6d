#!/bin/bash
# A Debian machine with systemd and cgroup v2 in QEMU's own emulation: no KVM, no network device.
#
#   machine.sh build SYSTEM IMAGE        makes the folder IMAGE. Takes root, and mmdebstrap, e2fsprogs, busybox-static,
#                                        kmod, binutils, xz-utils, zstd; for arm64 on another processor qemu-user-static, arch-test
#   machine.sh run IMAGE FOLDER COMMAND  boots, runs COMMAND in a login session of root with FOLDER at /share, prints its
#                                        output and exits with its exit code; 124 after VM_SECONDS=1800. The disk is
#                                        never changed. Takes qemu-system-x86 or qemu-system-arm, and no root
#
# SYSTEM is bookworm, trixie, arm64 (bookworm), or linux-5.10 (bookworm with the kernel of bullseye). In the guest,
# `su-alice COMMAND` runs a command in a login session of an ordinary user, who has a user manager of systemd.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

build() {
    local suite=$1 image=$2 arch=amd64 kernel_suite version modules start unpack archive
    kernel_suite=$suite
    case $suite in
        arm64) arch=arm64 suite=bookworm kernel_suite=bookworm ;;
        linux-5.10) suite=bookworm kernel_suite=bullseye ;;
    esac
    root=$image/root # not local: the trap reads it
    mkdir -p "$root"
    # In memory: dpkg waits for the disk at each file.
    mount -t tmpfs -o mode=755,size=4G vm "$root"
    trap 'umount "$root"; rmdir "$root"; unregister' EXIT
    register "$arch"
    # The kernel is unpacked, not installed: its package would bring initramfs-tools and a minute of building an initrd.
    # It lies in /boot, since mmdebstrap empties /tmp.
    archive="deb http://deb.debian.org/debian $kernel_suite main"
    # shellcheck disable=SC2016 # the hook's own variables
    mmdebstrap --quiet --mode=root --arch="$arch" --variant=apt --skip=cleanup/apt/lists \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --include="$(packages)" \
        --customize-hook='[ '"$kernel_suite = $suite"' ] || { echo "'"$archive"'" >"$1/etc/apt/sources.list.d/kernel.list"; chroot "$1" apt-get -qq update; }' \
        --customize-hook='chroot "$1" sh -ec "cd /boot; apt-get download -q \$(apt-cache depends linux-image-'"$arch/$kernel_suite"' | sed -n \"s/^ *Depends: //p\" | head -1)"' \
        "$suite" "$root"
    dpkg-deb -x "$root"/boot/linux-image-*.deb "$image/linux"
    rm -rf "$root"/boot/*.deb "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin
    shopt -s nullglob
    # /lib in Debian 12, /usr/lib in 13.
    for modules in "$image"/linux/{,usr/}lib/modules/[0-9]*; do version=${modules##*/}; done
    mv "$image"/linux/boot/vmlinuz-* "$image/kernel"
    # An unpacked kernel starts at once, without the BIOS and 10 s of unpacking: QEMU starts an ELF file with a PVH note.
    if [ "$arch" = amd64 ] &&
        start=$(LC_ALL=C grep -aboP -m1 '\xfd7zXZ\x00|\x28\xb5\x2f\xfd' "$image/kernel" | head -1 | cut -d: -f1); then
        for unpack in xz zstd; do
            tail -c +$((start + 1)) "$image/kernel" | $unpack -dc >"$image/vmlinux" 2>/dev/null || true
            [ ! -s "$image/vmlinux" ] || break
        done
        if readelf -h "$image/vmlinux" >/dev/null 2>&1; then
            mv "$image/vmlinux" "$image/kernel"
        else
            rm "$image/vmlinux"
        fi
    fi
    rm -rf "$modules"/kernel/drivers/{gpu,net,media,scsi,staging,infiniband,iio,usb,hid,ata,md,input,isdn,mmc,mtd,comedi} \
        "$modules"/kernel/drivers/{video,target,power,hwmon,i2c} "$modules"/kernel/sound
    mkdir -p "$root/usr/lib/modules"
    mv "$modules" "$root/usr/lib/modules/"
    rm -rf "$image/linux"
    depmod -b "$root" "$version"
    make_initrd "$root" "$image" "$version"
    set_up "$root"
    echo "$arch" >"$image/arch"
    truncate -s 6G "$image/disk.new"
    mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=1 -d "$root" "$image/disk.new"
    mv "$image/disk.new" "$image/disk" # the last step: a folder with a disk is complete
}

packages() {
    printf %s systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,kmod,procps,util-linux,passwd,python3,python3-venv, \
        podman,crun,uidmap,nginx-light,gcc,libc6-dev,binutils,busybox-static
}

# The programs of another processor run while its image is made; the entry is removed afterwards.
registered=
register() {
    local name=/proc/sys/fs/binfmt_misc
    [ "$1" = arm64 ] && [ "$(uname -m)" != aarch64 ] && [ ! -e $name/qemu-aarch64 ] || return 0
    [ -e $name/register ] || mount -t binfmt_misc binfmt_misc $name
    # The header of an ELF file for AArch64; F: the interpreter is opened now, and need not lie in the image.
    printf '%s' ':footprint-vm-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F' >$name/register
    registered=$name/footprint-vm-aarch64
}

unregister() {
    [ -z "$registered" ] || echo -1 >"$registered"
}

# busybox, and the modules that the root disk and 9p need, in the order of their dependencies.
make_initrd() {
    local root=$1 image=$2 version=$3 n=100 module file
    mkdir -p "$image"/initrd.d/{dev,new,m}
    cp "$root/bin/busybox" "$image/initrd.d/busybox"
    for module in virtio_pci virtio_blk ext4 9pnet_virtio 9p overlay; do
        modprobe -S "$version" -d "$root" --show-depends $module
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
        n=$((n + 1))
        case $file in
            *.xz) xz -dc "$file" >"$image/initrd.d/m/$n.ko" ;; # Debian 13
            *) cp "$file" "$image/initrd.d/m/$n.ko" ;;
        esac
    done
    cat >"$image/initrd.d/init" <<'X'
#!/busybox sh
/busybox mount -t devtmpfs dev /dev
for m in /m/*; do /busybox insmod $m; done
/busybox mount -t ext4 /dev/vda /new
for t in share vm; do /busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,$([ $t = vm ] || echo cache=mmap) $t /new/$t; done
exec /busybox switch_root /new /sbin/init
X
    chmod 755 "$image/initrd.d/init"
    (cd "$image/initrd.d" && find . | busybox cpio -o -H newc -R 0:0 2>/dev/null | gzip -1) >"$image/initrd"
    rm -rf "$image/initrd.d"
}

# systemd with the units that the tests need: in emulation each other one takes seconds at every boot.
set_up() {
    local root=$1 unit generator link
    mkdir -p "$root"/{share,vm,var/lib/systemd/linger,etc/systemd/system.conf.d,etc/systemd/user.conf.d,etc/systemd/journald.conf.d}
    echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id" # without one each boot is a first boot
    echo vm >"$root/etc/hostname"
    : >"$root/etc/fstab"
    rm -f "$root/etc/resolv.conf"
    echo kernel.yama.ptrace_scope=1 >"$root/etc/sysctl.d/50-yama.conf"
    printf '[Manager]\nDefaultTimeoutStartSec=900\nDefaultDeviceTimeoutSec=900\n' |
        tee "$root/etc/systemd/system.conf.d/slow.conf" >"$root/etc/systemd/user.conf.d/slow.conf"
    printf '[Journal]\nStorage=volatile\n' >"$root/etc/systemd/journald.conf.d/volatile.conf"
    for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
        fstrim.timer man-db.timer systemd-timesyncd.service systemd-udevd.service systemd-udev-trigger.service \
        systemd-udev-settle.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-random-seed.service \
        systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-hwdb-update.service \
        systemd-pstore.service systemd-binfmt.service systemd-journal-flush.service systemd-networkd.service \
        systemd-networkd.socket getty.target getty-static.service podman.socket podman.service podman-restart.service \
        podman-auto-update.service podman-auto-update.timer podman-clean-transient.service ldconfig.service \
        systemd-modules-load.service modprobe@{fuse,configfs,drm,loop,dm_mod,efi_pstore}.service kmod-static-nodes.service \
        systemd-tmpfiles-setup-dev-early.service systemd-tmpfiles-setup-dev.service systemd-remount-fs.service \
        systemd-network-generator.service systemd-pcrphase.service systemd-sysusers.service dev-hugepages.mount \
        dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount; do
        ln -sf /dev/null "$root/etc/systemd/system/$unit"
    done
    # Generators run at each start of each manager, that of podman for seconds. (systemd.mask= works by the one for debugging.)
    for generator in "$root"/usr/lib/systemd/{system,user}-generators/*; do
        case $generator in *-debug-generator) continue ;; esac
        link=$root/etc/${generator#"$root"/usr/lib/}
        mkdir -p "${link%/*}"
        ln -sf /dev/null "$link"
    done
    chroot "$root" useradd -m -s /bin/bash alice
    chroot "$root" passwd -qd root
    grep -q '^alice:' "$root/etc/subuid" || echo alice:100000:65536 | tee -a "$root/etc/subuid" >>"$root/etc/subgid"
    : >"$root/var/lib/systemd/linger/alice" # as loginctl enable-linger alice
    cat >"$root/usr/local/bin/su-alice" <<'X'
#!/bin/sh
exec systemd-run --quiet --wait --pipe --uid=alice -p PAMName=login -p WorkingDirectory=/home/alice -E XDG_RUNTIME_DIR=/run/user/1000 -- "$@"
X
    chmod 755 "$root/usr/local/bin/su-alice"
    cat >"$root/etc/systemd/system/command.service" <<'X'
[Unit]
Requires=multi-user.target
Wants=user@1000.service
After=multi-user.target user@1000.service systemd-logind.service systemd-user-sessions.service
[Service]
PAMName=login
User=root
WorkingDirectory=/root
OOMPolicy=continue
Environment=HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/bin/sh -c 'cat /proc/uptime >/vm/up; bash /vm/command >/vm/out 2>&1 </dev/null; echo $? >/vm/code; systemctl poweroff -ff'
X
}

run() {
    local image=$1 share machine tty code=0
    pid= # neither this nor the box is local: the trap reads them
    share=$(realpath "$2")
    box=$(mktemp -d)
    trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$box"' EXIT
    printf '%s\n' "$3" >"$box/command"
    : >"$box/out"
    # -cpu max is slow on arm64 (pointer authentication); on amd64 it has five levels of page tables, as few machines do.
    case $(cat "$image/arch") in
        amd64) machine=(qemu-system-x86_64 -M q35 -cpu max,la57=off) tty=ttyS0 ;;
        arm64) machine=(qemu-system-aarch64 -M virt -cpu cortex-a72) tty=ttyAMA0 ;;
    esac
    timeout "${VM_SECONDS:-1800}" "${machine[@]}" -accel tcg,thread=multi,tb-size=512 -smp 2 -m "${VM_MEMORY:-2048}" \
        -display none -nodefaults -no-reboot -nic none -serial file:"$box/console" \
        -kernel "$image/kernel" -initrd "$image/initrd" \
        -drive file="$image/disk",format=raw,if=virtio,snapshot=on,cache=unsafe \
        -virtfs local,path="$share",mount_tag=share,security_model=none,multidevs=remap \
        -virtfs local,path="$box",mount_tag=vm,security_model=none \
        -append "console=$tty quiet panic=-1 mitigations=off audit=0 init_on_alloc=0 nowatchdog rcupdate.rcu_expedited=1 systemd.unit=command.service systemd.show_status=0 ${VM_KERNEL:-}" \
        </dev/null >"$box/qemu" 2>&1 &
    pid=$!
    tail -n +1 -s 0.2 -f --pid=$pid "$box/out" || true # what is shown decides nothing
    wait $pid || code=$?
    echo "machine.sh: the command began $(cut -d. -f1 "$box/up" 2>/dev/null || echo never) s after the kernel" >&2
    [ ! -e "$box/code" ] || exit "$(cat "$box/code")"
    cat "$box/qemu" "$box/console" >&2
    exit $((code ? code : 125))
}

case ${1:-} in
    build) build "$2" "$(realpath -m "$3")" ;;
    run) run "$(realpath -m "$2")" "$3" "$4" ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
