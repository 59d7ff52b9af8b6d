#!/bin/sh
# Audits a running program as if 10,000 copies of it ran.
#
#   sh sample_binaries/demo.sh [footprint command...]
#
# The program is condor_shadow/base, prebuilt for x86-64 with glibc; where that cannot run, a sleeping Python stands in.
set -eu

count=10000
here=$(dirname "$0")
sample=$here/condor_shadow/base
[ $# -gt 0 ] || set -- footprint

said=$(mktemp)
pid=
stop() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || :
    [ -z "$pid" ] || wait "$pid" 2>/dev/null || :
    pid=
}
trap 'stop; rm -f "$said"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Starts a program and waits, for ten seconds at most, until it has printed "ready"; fails when it never does.
start() {
    "$@" >"$said" 2>/dev/null &
    pid=$!
    tries=0
    until grep -q ready "$said"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 100 ] || ! kill -0 "$pid" 2>/dev/null; then
            stop
            return 1
        fi
        sleep 0.1
    done
}

# A shell would take an ELF file of another machine for a script: look before it leaps.
runs_here() {
    [ "$(uname -m)" = x86_64 ] && [ -e /lib64/ld-linux-x86-64.so.2 ] && [ -x "$sample" ]
}

if runs_here && start "$sample" --wait; then
    what=$sample
else
    echo "demo: $sample cannot run on this machine ($(uname -m)): auditing a sleeping Python instead" >&2
    what="a sleeping Python"
    start "${PYTHON:-python3}" -c 'import time; print("ready", flush=True); time.sleep(600)' || {
        echo "demo: ${PYTHON:-python3} does not start" >&2
        exit 1
    }
fi

echo "\$ footprint audit $pid -n $count    # $pid is $what" >&2
"$@" audit "$pid" -n "$count"
