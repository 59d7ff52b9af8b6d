"""Sizes of kernel objects, from folders and texts as the kernel has them."""

from pathlib import Path

from footprint.sources.calibration import read_slab_sizes

SLABINFO = """\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> ...
pid                  521    546    192   21    1 : tunables    0    0    0 : slabdata     26     26      0
task_struct          181    200   5888    5    8 : tunables    0    0    0 : slabdata     40     40      0
torn
"""


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="ascii")


def test_sizes_are_those_of_sys_where_each_cache_has_its_own_name(tmp_path: Path) -> None:
    write(tmp_path, "sys/kernel/slab/filp/slab_size", "192\n")
    write(tmp_path, "sys/kernel/slab/pid/slab_size", "what\n")
    write(tmp_path, "proc/slabinfo", SLABINFO)
    assert read_slab_sizes(["filp", "pid", "task_struct"], str(tmp_path)) == {"filp": 192}


def test_without_sys_they_are_those_of_slabinfo(tmp_path: Path) -> None:
    write(tmp_path, "proc/slabinfo", SLABINFO)
    assert read_slab_sizes(["filp", "task_struct"], str(tmp_path)) == {"task_struct": 5888}


def test_where_neither_may_be_read_nothing_is_known(tmp_path: Path) -> None:
    assert read_slab_sizes(["filp"], str(tmp_path)) == {}
