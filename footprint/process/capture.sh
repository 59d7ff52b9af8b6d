#!/bin/sh
# Reads processes on a machine where footprint is not installed, and prints them as one text:
#
#     sh capture.sh PID... > web.capture             the processes
#     sh capture.sh -t PID... > web.capture          with all processes that descend from them
#
# Then, elsewhere:  footprint audit web.capture
#
# It needs a POSIX shell with printf, cat and readlink; with od and stat it also identifies the mapped files. It writes to no file,
# and stops nothing. Run it as the user of the processes, or as root. The text may hold command lines: keep it private.

LC_ALL=C
export LC_ALL
is_tree=
if [ "$1" = -t ]; then
    is_tree=1
    shift
fi
if [ $# -eq 0 ]; then
    echo 'usage: sh capture.sh [-t] PID... > FILE' >&2
    exit 2
fi
pids=
for pid in "$@"; do
    case $pid in
        '' | *[!0-9]* | ???????????*)
            echo "capture.sh: $pid is no process ID" >&2
            exit 2
            ;;
    esac
    case " $pids " in
        *" $pid "*) ;;
        *) pids="$pids $pid" ;;
    esac
done

# No process can know this word, so no text of a process looks like the begin of another one.
read -r token 2>/dev/null </proc/sys/kernel/random/uuid || token=$$-$PPID
read -r kernel </proc/sys/kernel/osrelease || kernel=
machine=$(uname -m 2>/dev/null) || machine=

# begin NAME: the next text is that of NAME.
begin() {
    # Not echo: in many shells it reads a backslash, of a path of /proc/PID/maps, as the begin of a control character.
    printf '\n%s\n' "$token $1"
}

# text PID NAME: copies a text of the kernel, where there is one and we may read it.
text() {
    # Some files may be opened by all, and read by few.
    read -r _ 2>/dev/null <"/proc/$1/$2" || return 1
    begin "$1 $2"
    cat "/proc/$1/$2" 2>/dev/null
}

# parent PID: sets `parent`.
parent() {
    parent=
    # Not /proc/PID/stat: the name of a process may hold any character there, also the end of a line.
    while read -r key value; do
        if [ "$key" = PPid: ]; then
            parent=$value
            return
        fi
    done 2>/dev/null <"/proc/$1/status"
    return 1
}

# Adds the processes whose parent is in `pids`, until there are no more.
add_descendants() {
    has_more=1
    while [ -n "$has_more" ]; do
        has_more=
        for folder in /proc/[0-9]*; do
            pid=${folder#/proc/}
            case " $pids " in *" $pid "*) continue ;; esac
            parent "$pid" || continue
            case " $pids " in
                *" $parent "*)
                    # The shells that run this script are no part of what is measured.
                    [ "$pid" = $$ ] && continue
                    pids="$pids $pid"
                    has_more=1
                    ;;
            esac
        done
    done
}

# mapped PID RANGE: sets `mapped`, the path of the file itself that is mapped there.
mapped() {
    # The names of these files have no leading zeros.
    start=${2%-*} end=${2#*-}
    start=${start#"${start%%[!0]*}"} end=${end#"${end%%[!0]*}"}
    mapped=/proc/$1/map_files/${start:-0}-$end
}

# same DEVICE INODE: whether descriptor 3 is this regular file.
same() {
    [ -f /proc/self/fd/3 ] && facts=$(stat -L -c '%D %i' /proc/self/fd/3 2>/dev/null) || return 1
    [ "${facts#* }" = "$2" ] || return 1
    number=$((0x${facts% *}))
    [ "$(printf %02x:%02x $((number >> 8 & 0xfff)) $((number & 0xff | number >> 12 & 0xfff00)))" = "$1" ] && return
    # These file systems tell another device there.
    case $(stat -f -c %T /proc/self/fd/3 2>/dev/null) in overlayfs | btrfs) ;; *) return 1 ;; esac
}

# beginning: prints the size and the first bytes of descriptor 3.
beginning() {
    size=$(stat -L -c %s /proc/self/fd/3 2>/dev/null) || size=
    begin "$1 file $2 $3 ${size:-?} $4"
    # Where there is no od, the file is named all the same, once.
    od -A n -v -t x1 -N 4096 <&3 2>/dev/null || :
}

# files PID: says of each mapped file its size, and its first bytes, which hold the build-id.
files() {
    seen=
    while read -r range _ _ device inode path; do
        [ "$inode" != 0 ] || continue
        case $seen in *"<$device $inode>"*) continue ;; esac
        seen="$seen<$device $inode>"
        mapped "$1" "$range"
        # By its path it may be another file by now: a link out of the root of the process, or a pipe that nobody writes to.
        if [ -f "$mapped" ] && { beginning "$1" "$device" "$inode" "$path"; } 3<"$mapped" 2>/dev/null; then
            continue
        fi
        place=/proc/$1/root$path
        if [ -f "$place" ] && { same "$device" "$inode" && beginning "$1" "$device" "$inode" "$path"; } 3<"$place" 2>/dev/null
        then
            continue
        fi
        begin "$1 file $device $inode ? $path"
    done <"/proc/$1/maps"
}

# allocated PID: says how many blocks of 512 bytes each mapped file in memory holds, also those that nobody has mapped.
allocated() {
    seen=
    while read -r range _ _ device inode path; do
        case $path in /dev/zero* | /dev/shm/* | /memfd:* | /SYSV*) ;; *) continue ;; esac
        case $seen in *"<$device $inode>"*) continue ;; esac
        seen="$seen<$device $inode>"
        mapped "$1" "$range"
        blocks=$(stat -L -c %b "$mapped" 2>/dev/null) || continue
        begin "$1 allocated $device $inode $blocks"
    done <"/proc/$1/maps"
}

# descriptors PID: says what each descriptor refers to, and how many blocks of 512 bytes a file in memory holds.
descriptors() {
    for link in /proc/"$1"/fd/*; do
        number=${link##*/}
        [ "$number" != '*' ] || return
        begin "$1 fd $number"
        target=$(readlink "$link" 2>/dev/null)
        printf '%s\n' "$target"
        cat "/proc/$1/fdinfo/$number" 2>/dev/null
        case $target in
            /memfd:* | /*' (deleted)')
                [ "$(stat -f -L -c %T "$link" 2>/dev/null)" = tmpfs ] || continue
                blocks=$(stat -L -c %b "$link" 2>/dev/null) && begin "$1 held $number $blocks"
                ;;
        esac
    done
}

[ -z "$is_tree" ] || add_descendants
echo "footprint-text-capture/1 $token"
echo "kernel $kernel"
echo "machine $machine"
echo "name $(uname -n 2>/dev/null)"
captured_at=$(date -u +%Y-%m-%dT%H:%M:%SZ 2>/dev/null) && echo "captured_at $captured_at"
while read -r key value _; do
    case $key in MemTotal: | MemAvailable:) echo "${key%:} $value" ;; esac
done </proc/meminfo
failed=
has_sockets=
for pid in $pids; do
    if ! read -r _ 2>/dev/null <"/proc/$pid/maps"; then
        echo "capture.sh: process $pid: it does not exist, has no memory of its own, or we may not read it" >&2
        begin "$pid absent"
        failed=1
        continue
    fi
    text "$pid" stat
    text "$pid" status
    text "$pid" smaps || text "$pid" maps
    text "$pid" smaps_rollup
    text "$pid" cgroup
    begin "$pid cmdline"
    cat "/proc/$pid/cmdline" 2>/dev/null
    for thread in /proc/"$pid"/task/[0-9]*; do
        [ "${thread##*/}" = "$pid" ] || text "$pid" "task/${thread##*/}/syscall"
    done
    descriptors "$pid"
    if [ -z "$has_sockets" ]; then
        # The kinds of all sockets of its network namespace, which the processes of a tree share.
        for kind in unix tcp tcp6 udp udp6; do text "$pid" "net/$kind"; done
        has_sockets=1
    fi
    files "$pid"
    allocated "$pid"
done
# Without this line the text was cut.
begin end
[ -z "$failed" ] || exit 4
