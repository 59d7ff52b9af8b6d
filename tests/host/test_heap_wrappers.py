"""Containers and smart pointers of C++ and Rust: the function of the program that fills them is charged."""

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import footprint
from footprint.elf.names import shown_name

CPP: Final = """
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <vector>
struct Big { char room[5000]; };
std::vector<int> numbers; std::map<int, Big> tree; std::unordered_map<int, Big> table; std::list<Big> chain;
std::deque<Big> ends; std::unique_ptr<Big[]> owned; std::shared_ptr<Big> shared; std::string text;
namespace app {
#define NOINLINE __attribute__((noinline))
NOINLINE void push_numbers() { for (int i = 0; i < 60000; ++i) numbers.push_back(i); }
NOINLINE void fill_tree() { for (int i = 0; i < 20; ++i) tree[i].room[0] = 1; }
NOINLINE void fill_table() { for (int i = 0; i < 20; ++i) table[i].room[0] = 1; }
NOINLINE void fill_list() { for (int i = 0; i < 20; ++i) chain.emplace_back(); }
NOINLINE void fill_deque() { for (int i = 0; i < 20; ++i) ends.emplace_back(); }
NOINLINE void make_owned() { owned = std::make_unique<Big[]>(20); }
NOINLINE void make_shared_one() { shared = std::make_shared<Big>(); }
NOINLINE void append_text() { for (int i = 0; i < 30000; ++i) text += 'x'; }
NOINLINE void in_a_thread() { for (int i = 0; i < 20; ++i) chain.emplace_back(); }
}
int main() {
  using namespace app;
  push_numbers(); fill_tree(); fill_table(); fill_list(); fill_deque(); make_owned(); make_shared_one(); append_text();
  std::thread(in_a_thread).join();
  return 0;
}
"""
# Bytes of the blocks that stay, without those of nodes and tables: a node adds up to 40 bytes, a table some hundred.
CPP_LEAST: Final = {
    "app::push_numbers()": 240_000,
    "app::fill_tree()": 100_000,
    "app::fill_table()": 100_000,
    "app::fill_list()": 100_000,
    "app::fill_deque()": 100_000,
    "app::make_owned()": 100_000,
    "app::make_shared_one()": 5_000,
    "app::append_text()": 30_000,
    "app::in_a_thread()": 100_000,
}
RUST: Final = """
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::{rc::Rc, sync::Arc};
type Room = [u8; 500];
#[inline(never)] fn push_numbers() -> Vec<u64> { let mut v = Vec::new(); for i in 0..50000u64 { v.push(i) } v }
#[inline(never)] fn fill_map() -> HashMap<u64, Room> {
    let mut m = HashMap::new(); for i in 0..100 { m.insert(i, [1; 500]); } m
}
#[inline(never)] fn fill_set() -> HashSet<u64> { (0..3000).collect() }
#[inline(never)] fn fill_tree() -> BTreeMap<u64, Room> {
    let mut m = BTreeMap::new(); for i in 0..100 { m.insert(i, [1; 500]); } m
}
#[inline(never)] fn append_text() -> String { let mut s = String::new(); for _ in 0..50000 { s.push('x') } s }
#[inline(never)] fn counted() -> Rc<[u8; 20000]> { Rc::new([7; 20000]) }
#[inline(never)] fn shared() -> Arc<[u8; 20000]> { Arc::new([7; 20000]) }
#[inline(never)] fn queue() -> VecDeque<u64> { let mut q = VecDeque::new(); for i in 0..20000 { q.push_back(i) } q }
#[inline(never)] fn copied(v: &[u64]) -> Vec<u64> { v.to_vec() }
#[inline(never)] fn zeroed() -> Vec<u8> { vec![0; 70000] }
fn main() {
    let n = push_numbers();
    let kept = (copied(&n), fill_map(), fill_set(), fill_tree(), append_text(), counted(), shared(), queue(), zeroed());
    std::hint::black_box(&kept);
    // Memory is in use at the end: the destructors do not run.
    std::process::exit(0)
}
"""
RUST_LEAST: Final = {
    "main::push_numbers": 400_000,
    "main::fill_map": 50_000,
    "main::fill_set": 24_000,
    "main::fill_tree": 50_000,
    "main::append_text": 50_000,
    "main::counted": 20_000,
    "main::shared": 20_000,
    "main::queue": 160_000,
    "main::copied": 400_000,
    "main::zeroed": 70_000,
}
PROFILERS: Final = {
    "massif": ("valgrind", "--tool=massif", "--threshold=0", "--massif-out-file=profile"),
    "dhat": ("valgrind", "--tool=dhat", "--num-callers=40", "--dhat-out-file=profile"),
    "heaptrack": ("heaptrack", "-o", "profile"),
}


def run(folder: Path, *words: str) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(words, cwd=folder, env=os.environ, capture_output=True, check=False, timeout=240)
    if done.returncode:
        pytest.skip(f"{words[0]} fails here: {done.stderr.decode(errors='replace')[-200:]}")


def charged(folder: Path, profiler: str) -> Counter[str]:
    """Return the bytes at the peak by the shown name of the function, as a profiler recorded them."""
    run(folder, *PROFILERS[profiler], "./main")
    if profiler == "heaptrack":
        packed = next(path for path in folder.iterdir() if path.name.startswith("profile."))
        run(folder, "zstd" if packed.suffix == ".zst" else "gzip", "-qdf", packed.name)
    (usage,) = footprint.heap_profile(folder / "profile", binaries=[folder / "main"]).files
    sums: Counter[str] = Counter()
    assert usage.attribution is not None
    for share in usage.attribution.shares:
        sums[shown_name(share.function)] += share.size_bytes
    return sums


def check(result: Counter[str], least: dict[str, int]) -> None:
    missing = {name: (result[name], bytes_) for name, bytes_ in least.items() if result[name] < bytes_}
    assert not missing
    # Nothing of weight is left to a library.
    rest = {name: size for name, size in result.items() if size >= 5_000 and name.startswith(("std::", "alloc::", "<"))}
    assert not rest


@pytest.mark.parametrize("profiler", PROFILERS)
@pytest.mark.parametrize("level", ["-O0", "-O1 -g"])
def test_memory_of_cpp_containers_is_that_of_the_function_which_fills_them(
    profiler: str, level: str, tmp_path: Path
) -> None:
    (tmp_path / "main.cc").write_text(CPP, encoding="utf-8")
    run(tmp_path, "g++", *level.split(), "-fno-optimize-sibling-calls", "-pthread", "-o", "main", "main.cc")
    check(charged(tmp_path, profiler), CPP_LEAST)


@pytest.mark.parametrize("profiler", PROFILERS)
@pytest.mark.parametrize("level", ["0", "1"])
def test_memory_of_rust_collections_is_that_of_the_function_which_fills_them(
    profiler: str, level: str, tmp_path: Path
) -> None:
    (tmp_path / "main.rs").write_text(RUST, encoding="utf-8")
    run(tmp_path, "rustc", "-C", f"opt-level={level}", "-g", "main.rs")
    check(charged(tmp_path, profiler), RUST_LEAST)
