"""What the ELF writer of the tests writes is what readelf, pyelftools, ar, the kernel and ld.so read."""

import io
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from tests.elfkinds import in_all_classes_and_orders
from tests.elfwriter import (
    DT_NEEDED,
    DT_SONAME,
    EM_386,
    EM_ARM,
    EM_MIPS,
    EM_X86_64,
    ET_EXEC,
    ET_REL,
    PF_R,
    PF_W,
    PN_XNUM,
    PT_LOAD,
    PT_NULL,
    RO,
    RW,
    RX,
    SHN_ABS,
    SHN_COMMON,
    SHN_LORESERVE,
    SHN_XINDEX,
    SHT_INIT_ARRAY,
    SHT_NOBITS,
    SHT_REL,
    SHT_RELA,
    SHT_RELR,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_SECTION,
    STT_TLS,
    STV_HIDDEN,
    TLS,
    VER_FLG_BASE,
    VER_FLG_WEAK,
    VERSYM_HIDDEN,
    At,
    Dyn,
    ElfFile,
    Rel,
    Section,
    Segment,
    Size,
    Sym,
    Version,
    archive,
    patch,
    peek,
    relr,
    write,
)

SHARED_OBJECT = ElfFile(
    build_id=bytes(range(20)),
    relro=[".tdata", ".tbss", ".init_array", ".data.rel.ro", ".dynamic"],
    sections=[
        Section(".text", flags=RX, data=bytes(32), align=16),
        Section(
            ".rela.dyn", SHT_RELA, RO, [Rel(At(".data.rel.ro"), 1, "imported", -8), Rel(At(".data"), 2, addend=16)]
        ),
        Section(".rel.dyn", SHT_REL, RO, [Rel(At(".data", 8), 3, "table")]),
        Section(".tdata", flags=TLS, data=bytes(12), align=4),
        Section(".tbss", SHT_NOBITS, TLS, size=100, align=32),
        Section(".init_array", SHT_INIT_ARRAY, RW, [At(".text")]),
        Section(".data.rel.ro", flags=RW, data=[At(".text", 4), Size(".bss"), b"bytes"]),
        Section(".data", flags=RW, data=bytes(100), align=32),
        Section(".bss", SHT_NOBITS, RW, size=10_000, align=64),
    ],
    symbols=[
        Sym("table", At(".bss"), 400),
        Sym("counter", At(".data", 8), 4, binding=STB_LOCAL),
        Sym("per_thread", At(".tbss", 4), 8, STT_TLS, visibility=STV_HIDDEN),
        Sym("constant", 0x55, section=SHN_ABS),
        Sym("imported", binding=STB_WEAK),
    ],
    dynamic_symbols=[Sym("table", At(".bss"), 400), Sym("imported", type=STT_FUNC)],
    dynamic=[Dyn(DT_NEEDED, "libc.so.6"), Dyn(DT_NEEDED, "libm.so.6"), Dyn(DT_SONAME, "libdemo.so.1")],
)
RELOCATABLE = ElfFile(
    type=ET_REL,
    sections=[
        Section(".text", flags=RX, data=bytes(32), align=16),
        Section(".rela.text", SHT_RELA, data=[Rel(4, 1, "table", -4)], info=".text"),
        Section(".data.table", flags=RW, data=bytes(64), align=32),
        Section(".tbss", SHT_NOBITS, TLS, size=8, align=4),
    ],
    symbols=[
        Sym("table", At(".data.table", 16), 48),
        Sym("", At(".text"), type=STT_SECTION, binding=STB_LOCAL),
        Sym("per_thread", At(".tbss", 4), 4, STT_TLS),
        Sym("common", 16, 8, section=SHN_COMMON),
    ],
)
numbered_as_usual_and_extended = pytest.mark.parametrize("extended", [False, True], ids=["usual", "extended"])
on_linux_on_x86_64 = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the file is one for Linux on x86-64"
)


def readelf(folder: Path, image: bytes, *options: str) -> str:
    """Return what readelf prints about a file, which must not include an error or a warning."""
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    (folder / "file").write_bytes(image)
    command = ["readelf", "--wide", *options, str(folder / "file")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    complaints, has_more_segments = done.stderr.splitlines(), peek(image, "e_phnum") == PN_XNUM
    if has_more_segments:
        # readelf complains of two things that the format asks for; later releases than 2.40 fail of them.
        complaints = [each for each in complaints if "in info field" not in each and "Too many program" not in each]
    assert complaints == []
    assert done.returncode == 0 or (has_more_segments and done.stderr)
    return done.stdout


def elftools(image: bytes) -> Any:  # noqa: ANN401 - pyelftools has no types
    return ELFFile(io.BytesIO(image))


@in_all_classes_and_orders
@numbered_as_usual_and_extended
@pytest.mark.parametrize("file", [SHARED_OBJECT, RELOCATABLE], ids=["shared-object", "relocatable"])
def test_readelf_has_nothing_to_complain_of(
    tmp_path: Path, file: ElfFile, kind: dict[str, Any], *, extended: bool
) -> None:
    image = write(replace(file, **kind, extended=extended))
    printed = readelf(tmp_path, image, "--all")
    assert "per_thread" in printed
    assert not re.search("<corrupt|<unknown|warning", printed)


@in_all_classes_and_orders
@numbered_as_usual_and_extended
def test_readelf_reads_the_dynamic_section_and_the_notes(
    tmp_path: Path, kind: dict[str, Any], *, extended: bool
) -> None:
    printed = readelf(tmp_path, write(replace(SHARED_OBJECT, **kind, extended=extended)), "--dynamic", "--notes")
    assert re.findall(r"Shared library: \[(.*)\]", printed) == ["libc.so.6", "libm.so.6"]
    assert re.findall(r"Library soname: \[(.*)\]", printed) == ["libdemo.so.1"]
    assert f"Build ID: {bytes(range(20)).hex()}" in printed


@in_all_classes_and_orders
def test_readelf_finds_the_dynamic_symbols_by_the_hash_table_alone(tmp_path: Path, kind: dict[str, Any]) -> None:
    image = write(replace(SHARED_OBJECT, **kind))
    for field in ("e_shoff", "e_shnum", "e_shstrndx"):
        image = patch(image, field, 0)
    printed = readelf(tmp_path, image, "--use-dynamic", "--symbols")
    assert re.findall(r"OBJECT +GLOBAL +DEFAULT +\d+ (\w+)", printed) == ["table"]
    assert re.findall(r"FUNC +GLOBAL +DEFAULT +UND (\w+)", printed) == ["imported"]


VERSIONED = ElfFile(
    sections=[Section(".text", flags=RX, data=bytes(32))],
    gnu_hash=True,
    versions=[Version("libdemo.so.1", 1, VER_FLG_BASE), Version("DEMO_1", 2), Version("DEMO_2", 3)],
    needs={
        "libc.so.6": [Version("GLIBC_2.2.5", 4), Version("GLIBC_9", 5, VER_FLG_WEAK)],
        "libm.so.6": [Version("M", 6)],
    },
    dynamic_symbols=[
        Sym("asked", At(".text"), 4, STT_FUNC, version=2 | VERSYM_HIDDEN),
        Sym("asked", At(".text", 8), 4, STT_FUNC, version=3),
        Sym("malloc", type=STT_FUNC, version=4),
        Sym("sin", type=STT_FUNC, binding=STB_WEAK, version=6),
        Sym("plain", At(".text", 16), 4, STT_FUNC),
    ],
    dynamic=[Dyn(DT_NEEDED, "libc.so.6"), Dyn(DT_NEEDED, "libm.so.6"), Dyn(DT_SONAME, "libdemo.so.1")],
)


@in_all_classes_and_orders
def test_readelf_reads_the_versions_and_to_which_symbols_they_belong(tmp_path: Path, kind: dict[str, Any]) -> None:
    image = write(replace(VERSIONED, **kind))
    printed = readelf(tmp_path, image, "--dyn-syms", "--version-info")
    names = re.findall(r"FUNC +(?:GLOBAL|WEAK) +DEFAULT +\w+ (\S+)", printed)
    assert names == ["malloc@GLIBC_2.2.5", "sin@M", "asked@DEMO_1", "asked@@DEMO_2", "plain"]
    assert re.findall(r"Flags: (\w+) +Index: (\d) +Cnt: 1 +Name: (\S+)", printed) == [
        ("BASE", "1", "libdemo.so.1"),
        ("none", "2", "DEMO_1"),
        ("none", "3", "DEMO_2"),
    ]
    assert re.findall(r"File: (\S+) +Cnt: (\d)", printed) == [("libc.so.6", "2"), ("libm.so.6", "1")]
    assert re.findall(r"Name: (\S+) +Flags: (\w+) +Version: (\d)", printed) == [
        ("GLIBC_2.2.5", "none", "4"),
        ("GLIBC_9", "WEAK", "5"),
        ("M", "none", "6"),
    ]


@in_all_classes_and_orders
def test_pyelftools_counts_and_finds_symbols_by_the_gnu_hash_table(kind: dict[str, Any]) -> None:
    table = elftools(write(replace(VERSIONED, **kind))).get_section_by_name(".gnu.hash")
    assert table.get_number_of_symbols() == 6
    assert table.get_symbol("plain").name == "plain"
    assert table.get_symbol("malloc") is None


@in_all_classes_and_orders
@numbered_as_usual_and_extended
def test_pyelftools_reads_the_header_the_sections_and_their_contents(kind: dict[str, Any], *, extended: bool) -> None:
    elf = elftools(write(replace(SHARED_OBJECT, **kind, extended=extended)))
    assert (elf.elfclass, elf.little_endian) == (kind["bits"], kind["order"] == "little")
    sections = {section.name: section for section in elf.iter_sections()}
    assert [section.name for section in SHARED_OBJECT.sections] == list(sections)[1:10]
    assert all(sections[section.name]["sh_flags"] == section.flags for section in SHARED_OBJECT.sections)
    assert all(sections[section.name]["sh_addr"] % max(section.align, 1) == 0 for section in SHARED_OBJECT.sections)
    assert sections[".bss"]["sh_type"] == "SHT_NOBITS"
    assert sections[".bss"]["sh_size"] == 10_000
    assert sections[".symtab"]["sh_info"] == 2
    text_vaddr, word_bytes = sections[".text"]["sh_addr"], kind["bits"] // 8
    words = [(text_vaddr + 4).to_bytes(word_bytes, kind["order"]), (10_000).to_bytes(word_bytes, kind["order"])]
    assert sections[".data.rel.ro"].data() == b"".join(words) + b"bytes"


@in_all_classes_and_orders
@numbered_as_usual_and_extended
def test_pyelftools_reads_the_symbols(kind: dict[str, Any], *, extended: bool) -> None:
    elf = elftools(write(replace(SHARED_OBJECT, **kind, extended=extended)))
    symbols = {symbol.name: symbol for symbol in elf.get_section_by_name(".symtab").iter_symbols()}
    assert list(symbols) == ["", "counter", "table", "per_thread", "constant", "imported"]
    where = {name: symbol["st_value"] for name, symbol in symbols.items()}
    assert where["counter"] == elf.get_section_by_name(".data")["sh_addr"] + 8
    assert where["table"] == elf.get_section_by_name(".bss")["sh_addr"]
    assert where["per_thread"] == 32 + 4  # the 12 bytes of .tdata, up to the alignment of .tbss
    assert where["constant"] == 0x55
    assert symbols["counter"]["st_info"] == {"bind": "STB_LOCAL", "type": "STT_OBJECT"}
    assert symbols["imported"]["st_info"]["bind"] == "STB_WEAK"
    assert symbols["per_thread"]["st_other"]["visibility"] == "STV_HIDDEN"
    assert symbols["constant"]["st_shndx"] == "SHN_ABS"
    assert symbols["imported"]["st_shndx"] == "SHN_UNDEF"
    index = symbols["table"]["st_shndx"]
    if extended:
        assert index == SHN_XINDEX
        index = elf.get_section_by_name(".symtab_shndx").get_section_index(2)
    assert elf.get_section(index).name == ".bss"


@in_all_classes_and_orders
def test_pyelftools_reads_the_relocations(kind: dict[str, Any]) -> None:
    elf = elftools(write(replace(SHARED_OBJECT, **kind)))
    data_vaddr = elf.get_section_by_name(".data")["sh_addr"]
    with_addend = [relocation.entry for relocation in elf.get_section_by_name(".rela.dyn").iter_relocations()]
    assert [(each.r_info_sym, each.r_info_type, each.r_addend) for each in with_addend] == [(2, 1, -8), (0, 2, 16)]
    assert with_addend[1].r_offset == data_vaddr
    (without,) = [relocation.entry for relocation in elf.get_section_by_name(".rel.dyn").iter_relocations()]
    assert (without.r_offset, without.r_info_sym, without.r_info_type) == (data_vaddr + 8, 1, 3)


def test_readelf_reads_relocations_of_little_endian_mips_whose_types_are_written_otherwise(tmp_path: Path) -> None:
    mips = replace(RELOCATABLE, machine=EM_MIPS, flags=0x80000000)
    assert re.search(r"R_MIPS_16 .* table", readelf(tmp_path, write(mips), "--relocs"))


@in_all_classes_and_orders
def test_in_a_relocatable_file_symbols_are_offsets_into_their_sections(kind: dict[str, Any]) -> None:
    elf = elftools(write(replace(RELOCATABLE, **kind)))
    symbols = elf.get_section_by_name(".symtab")
    found = [(each.name, each["st_value"], each["st_shndx"]) for each in symbols.iter_symbols()]
    assert found[1:] == [("", 0, 1), ("table", 16, 3), ("per_thread", 4, 4), ("common", 16, "SHN_COMMON")]
    relocations = elf.get_section_by_name(".rela.text")
    assert elf.get_section(relocations["sh_info"]).name == ".text"
    assert elf.get_section(relocations["sh_link"]).name == ".symtab"
    assert elf.num_segments() == 0


@in_all_classes_and_orders
@pytest.mark.parametrize("page_bytes", [0x1000, 0x10000])
def test_segments_are_laid_out_as_linkers_do(kind: dict[str, Any], page_bytes: int) -> None:
    elf = elftools(write(replace(SHARED_OBJECT, **kind, page_bytes=page_bytes)))
    text, data = elf.iter_segments("PT_LOAD")
    (tls,), (relro,), (dynamic,) = (list(elf.iter_segments(f"PT_{each}")) for each in ("TLS", "GNU_RELRO", "DYNAMIC"))
    assert (text["p_offset"], text["p_vaddr"], data["p_vaddr"]) == (0, 0, page_bytes)
    assert all(each["p_offset"] % page_bytes == each["p_vaddr"] % page_bytes for each in (text, data))
    assert [each.name for each in elf.iter_sections() if data.section_in_segment(each)][-1] == ".dynamic"
    assert data["p_memsz"] - data["p_filesz"] == 28 + 10_000  # .bss, and what aligns it behind the 100 bytes of .data
    assert (tls["p_filesz"], tls["p_memsz"], tls["p_align"]) == (12, 132, 32)
    assert relro["p_vaddr"] == data["p_vaddr"]
    assert relro["p_vaddr"] + relro["p_memsz"] == elf.get_section_by_name(".data")["sh_addr"] == 2 * page_bytes
    assert dynamic["p_vaddr"] == elf.get_section_by_name(".dynamic")["sh_addr"]


def test_zeros_per_thread_take_no_addresses() -> None:
    image = write(SHARED_OBJECT)
    assert peek(image, "sh_addr", ".init_array") < peek(image, "sh_addr", ".tbss") + peek(image, "sh_size", ".tbss")


def test_given_addresses_are_kept_and_offsets_follow_them() -> None:
    sections = [
        Section(".text", flags=RX, data=b"text", addr=0x10074),
        Section(".data", flags=RW, data=b"data", addr=0x12345),
        Section(".bss", SHT_NOBITS, RW, size=16, addr=0x13000),
    ]
    image = write(ElfFile(bits=32, type=ET_EXEC, machine=EM_ARM, sections=sections))
    assert [peek(image, "sh_addr", name) for name in (".text", ".data", ".bss")] == [0x10074, 0x12345, 0x13000]
    assert [peek(image, "sh_offset", name) for name in (".text", ".data")] == [0x1074, 0x1345]
    assert [peek(image, "p_vaddr", number) for number in (0, 1)] == [0xF000, 0x12345]
    assert (peek(image, "p_filesz", 1), peek(image, "p_memsz", 1)) == (4, 0x13010 - 0x12345)


def test_a_made_section_stands_where_an_empty_one_of_its_name_was_given(tmp_path: Path) -> None:
    sections = [Section(".dynamic", flags=RW, addr=0x1F00), Section(".data", flags=RW, data=bytes(8), addr=0x2000)]
    image = write(ElfFile(sections=sections, dynamic=[Dyn(DT_SONAME, "libdemo.so")]))
    assert peek(image, "sh_addr", 1) == 0x1F00
    assert "[libdemo.so]" in readelf(tmp_path, image, "--dynamic")


def test_given_segments_are_written_as_they_are() -> None:
    segments = [
        Segment(PT_LOAD, PF_R | PF_W, [".data"], vaddr=0x7000, memsz=0x9000, align=0x100),
        Segment(PT_LOAD, PF_R, offset=0x123, vaddr=0x456, filesz=0x789, memsz=0xABC, align=0xDEF),
    ]
    image = write(ElfFile(sections=[Section(".data", flags=RW, data=bytes(8))], segments=segments))
    fields = ("p_offset", "p_vaddr", "p_filesz", "p_memsz", "p_align")
    assert [peek(image, field, 0) for field in fields] == [0x1000, 0x7000, 8, 0x9000, 0x100]
    assert [peek(image, field, 1) for field in fields] == [0x123, 0x456, 0x789, 0xABC, 0xDEF]
    assert peek(image, "sh_addr", ".data") == 0x7000


def test_what_does_not_fit_before_a_given_address_is_refused() -> None:
    sections = [Section(".data", flags=RW, data=bytes(8)), Section(".bss", SHT_NOBITS, RW, size=8, addr=4)]
    with pytest.raises(ValueError, match=r"\.bss at 0x4 begins before 0x8, where the one before ends"):
        write(ElfFile(sections=sections))
    with pytest.raises(ValueError, match=r"\.text at 0x10 begins before"):
        write(ElfFile(sections=[Section(".text", flags=RX, data=bytes(8), addr=0x10)]))


def test_a_name_that_nothing_has_is_refused() -> None:
    with pytest.raises(KeyError, match=r"\.data"):
        write(ElfFile(symbols=[Sym("table", At(".data"))]))


def test_a_name_need_not_be_text() -> None:
    assert b"\0caf\xe9\0" in write(ElfFile(symbols=[Sym("caf\udce9")]))


def test_more_sections_than_fit_in_the_header_are_numbered_in_the_first_section(tmp_path: Path) -> None:
    sections = [Section(f".data.{number}", flags=RW) for number in range(SHN_LORESERVE)]
    image = write(ElfFile(type=ET_REL, sections=sections, symbols=[Sym("last", At(sections[-1].name), 1)]))
    assert (peek(image, "e_shnum"), peek(image, "e_shstrndx")) == (0, SHN_XINDEX)
    assert elftools(image).num_sections() == 1 + SHN_LORESERVE + 4
    assert f"{SHN_LORESERVE} last" in readelf(tmp_path, image, "--symbols")


def test_more_segments_than_fit_in_the_header_are_numbered_in_the_first_section(tmp_path: Path) -> None:
    image = write(ElfFile(sections=[Section(".data")], segments=[Segment(PT_NULL)] * PN_XNUM))
    assert peek(image, "e_phnum") == PN_XNUM
    assert elftools(image).num_segments() == PN_XNUM
    assert f"65535 ({PN_XNUM})" in readelf(tmp_path, image, "--file-header", "--segments")


@pytest.mark.parametrize("bits", [32, 64])
def test_packed_relative_relocations_are_the_ones_that_were_asked_for(tmp_path: Path, bits: Any) -> None:  # noqa: ANN401
    word_bytes = bits // 8
    addresses = [0x2000 + word_bytes * number for number in (0, 1, 2, 5, 63, 64, 65, 200, 201, 1000)]
    machine = EM_X86_64 if bits == 64 else EM_386
    section = Section(".relr.dyn", SHT_RELR, RO, relr(addresses, bits))
    image = write(ElfFile(bits=bits, machine=machine, sections=[section], dynamic=[Dyn(DT_SONAME, "libdemo.so")]))
    printed = readelf(tmp_path, image, "--relocs")
    # An address a line; since 2.43 behind its index and its word, or behind blanks where it is of the same one.
    listed = re.findall(r"^(?:(?:\d+: +[0-9a-f]+)? +)?([0-9a-f]{8,16})(?: .*)?$", printed, re.MULTILINE)
    assert [int(each, 16) for each in listed] == addresses


@in_all_classes_and_orders
@numbered_as_usual_and_extended
def test_patching_changes_one_field_and_nothing_else(kind: dict[str, Any], *, extended: bool) -> None:
    image = write(replace(SHARED_OBJECT, **kind, extended=extended))
    for field, at, changed_bytes in (("e_type", 0, 2), ("p_flags", 1, 4), ("sh_size", ".bss", kind["bits"] // 8)):
        value = int.from_bytes(b"\x7e" * changed_bytes)
        patched = patch(image, field, value, at)
        assert peek(patched, field, at) == value != peek(image, field, at)
        assert patch(patched, field, peek(image, field, at), at) == image
        assert sum(old != new for old, new in zip(image, patched, strict=True)) <= changed_bytes
    assert elftools(patch(image, "sh_size", 1, ".bss")).get_section_by_name(".bss")["sh_size"] == 1
    assert list(elftools(patch(image, "p_memsz", 1, 1)).iter_segments())[1]["p_memsz"] == 1


def ar(folder: Path, image: bytes, *command: str) -> bytes:
    if shutil.which("ar") is None:
        pytest.skip("ar is not installed")
    (folder / "lib.a").write_bytes(image)
    return subprocess.run(["ar", *command, "lib.a"], cwd=folder, capture_output=True, check=True).stdout


MEMBERS = [("short.o", b"odd"), ("exactly_16_long.", b"even"), ("a_name_longer_than_its_field.o", b"long name")]


@pytest.mark.parametrize("bsd", [False, True], ids=["gnu", "bsd"])
def test_ar_lists_and_prints_the_members_of_an_archive(tmp_path: Path, *, bsd: bool) -> None:
    image = archive(MEMBERS, bsd=bsd)
    assert ar(tmp_path, image, "t").decode().split() == [name for name, _ in MEMBERS]
    assert ar(tmp_path, image, "p") == b"odd" + b"even" + b"long name"


def test_ar_lists_and_finds_the_members_of_a_thin_archive(tmp_path: Path) -> None:
    members = [("one.o", write(RELOCATABLE)), ("another_quite_long_name.o", write(SHARED_OBJECT))]
    for name, contents in members:
        (tmp_path / name).write_bytes(contents)
    image = archive(members, thin=True)
    assert len(image) < 300
    assert ar(tmp_path, image, "t").decode().split() == [name for name, _ in members]
    assert ar(tmp_path, image, "p") == members[0][1] + members[1][1]


@on_linux_on_x86_64
def test_the_kernel_runs_an_executable(tmp_path: Path) -> None:
    exit_42 = bytes.fromhex("bf2a000000 b83c000000 0f05")  # mov edi, 42; mov eax, 60; syscall
    program = tmp_path / "program"
    program.write_bytes(
        write(ElfFile(type=ET_EXEC, entry=At(".text"), sections=[Section(".text", flags=RX, data=exit_42)]))
    )
    program.chmod(0o755)
    assert subprocess.run([program], check=False).returncode == 42


@on_linux_on_x86_64
def test_the_loader_maps_relocates_and_searches_a_shared_object(tmp_path: Path) -> None:
    r_x86_64_relative = 8
    sections = [
        Section(".rela.dyn", SHT_RELA, RO, [Rel(At(".data", 8), r_x86_64_relative, addend=At(".data"))]),
        Section(".data", flags=RW, data=[7, 0]),
        Section(".bss", SHT_NOBITS, RW, size=10_000),
    ]
    symbols = [Sym("pointer", At(".data", 8), 8), Sym("zeros", At(".bss"), 10_000)]
    image = write(ElfFile(sections=sections, dynamic_symbols=symbols, relro=[".dynamic"]))
    (tmp_path / "libdemo.so").write_bytes(image)
    script = (
        "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]);"
        "print(ctypes.POINTER(ctypes.c_long).in_dll(library, 'pointer').contents.value,"
        "any((ctypes.c_char * 10_000).in_dll(library, 'zeros').raw))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "libdemo.so")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["7", "False"]
