#!/bin/bash
# In the guest: install the wheel, and run the tests as root, then as an ordinary user; arguments go on to pytest.
set -eu
umask 022
mkdir -p /opt/checkout/tests
cp -r /share/vm /opt/checkout/tests
cd /opt/checkout
python3 -m venv --without-pip /opt/footprint
pip=$(echo /share/wheels/pip-*.whl)
/opt/footprint/bin/python "$pip/pip" install --quiet --no-index --no-compile --find-links /share/wheels \
    footprint-audit pytest
# For the swap of a test: a file without holes.
dd if=/dev/zero of=/swapfile bs=1M count=128 status=none
chmod 600 /swapfile
mkswap --quiet /swapfile
# The kernel merges pages into huge ones when it wants to: only the tests of that have it on.
echo madvise >/sys/kernel/mm/transparent_hugepage/enabled
command=(/opt/footprint/bin/python -m pytest -c tests/vm/pytest.ini --rootdir=. -p no:cacheprovider -ra tests/vm "$@")
"${command[@]}" --junitxml=/share/results/root.xml || true
# shellcheck disable=SC2016 # the arguments of the inner shell
su-alice sh -c 'cd /opt/checkout && exec "$@"' sh "${command[@]}" --junitxml=/tmp/alice.xml || true
cp /tmp/alice.xml /share/results/
