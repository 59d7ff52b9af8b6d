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

# files PID: says of each mapped file its size, and its first bytes, which hold the build-id.
files() {
    seen=
    while read -r _ _ _ device inode path; do
        [ "$inode" != 0 ] || continue
        case $seen in *"<$device $inode>"*) continue ;; esac
        seen="$seen<$device $inode>"
        size=$(stat -L -c %s "/proc/$1/root$path" 2>/dev/null) || size=
        begin "$1 file $device $inode ${size:-?} $path"
        od -A n -v -t x1 -N 4096 "/proc/$1/root$path" 2>/dev/null
    done <"/proc/$1/maps"
}

# allocated PID: says how many blocks of 512 bytes each shared memory holds, also those that nobody has mapped.
allocated() {
    seen=
    while read -r range permissions _ device inode path; do
        case $permissions in *s) ;; *) continue ;; esac
        case $path in /dev/zero* | /dev/shm/* | /memfd:* | /SYSV*) ;; *) continue ;; esac
        case $seen in *"<$device $inode>"*) continue ;; esac
        seen="$seen<$device $inode>"
        blocks=$(stat -L -c %b "/proc/$1/map_files/$range" 2>/dev/null) || continue
        begin "$1 allocated $device $inode $blocks"
    done <"/proc/$1/maps"
}

# descriptors PID: says what each descriptor refers to.
descriptors() {
    for link in /proc/"$1"/fd/*; do
        number=${link##*/}
        [ "$number" != '*' ] || return
        begin "$1 fd $number"
        readlink "$link" 2>/dev/null
        cat "/proc/$1/fdinfo/$number" 2>/dev/null
    done
}

[ -z "$is_tree" ] || add_descendants
echo "footprint-text-capture/1 $token"
echo "kernel $kernel"
echo "machine $machine"
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
