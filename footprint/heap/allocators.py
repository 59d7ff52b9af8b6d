"""Allocation functions: functions that only pass memory on. Their callers are the functions that need the memory."""

import re
from collections.abc import Iterable
from typing import Final

from footprint.members import NamedTuple

USER: Final = "--alloc-fn"
"""The rule of the functions that the user names."""

REPLACEMENT: Final = "whole object"
"""The rule of the functions of whole objects."""

_STANDARD: Final = "standard library"
_RUST: Final = "Rust crates"
_OPERATORS: Final = "C++ allocation"


class AllocatorRule(NamedTuple):
    """One group of allocation functions.

    Attributes:
        name: The name of the group.
        patterns: Names without return type, template arguments and arguments; or beginnings of names, with a `*`.
    """

    name: str
    patterns: tuple[str, ...]


def _rule(name: str, patterns: str) -> AllocatorRule:
    return AllocatorRule(name, tuple(patterns.split()))


RULES: Final = (
    _rule(
        "C library",
        """
        malloc calloc realloc reallocarray memalign aligned_alloc posix_memalign valloc pvalloc
        strdup strndup wcsdup getline getdelim asprintf vasprintf __vasprintf_internal __asprintf_chk __vasprintf_chk
        __libc_malloc __libc_calloc __libc_realloc __libc_memalign __strdup __strndup __GI___strdup __getdelim
        mmap mmap64 mremap brk sbrk __mmap __mmap64 __brk __sbrk __default_morecore __glibc_morecore
        _int_malloc _int_realloc _int_memalign sysmalloc sysmalloc_mmap new_heap arena_get2 arena_get_retry
        tcache_init tcache_init.part.0 ptmalloc_init malloc_hook_ini realloc_hook_ini memalign_hook_ini
        """,
    ),
    _rule(
        "common names",
        """
        xmalloc xcalloc xrealloc xstrdup xstrndup xmemdup xzalloc xmallocarray xreallocarray do_xmalloc
        xcharalloc xnmalloc xpalloc x2realloc x2nrealloc xasprintf xvasprintf emalloc ecalloc erealloc estrdup
        safe_malloc safe_calloc safe_realloc safe_strdup zmalloc zcalloc zrealloc ztrymalloc* ztrycalloc* ztryrealloc*
        obstack_alloc _obstack_begin* _obstack_newchunk __interceptor_*
        """,
    ),
    AllocatorRule(
        _OPERATORS,
        ("operator new(*", "operator new[](*", "_Znwm*", "_Znam*", "_Znwj*", "_Znaj*", "__cxa_allocate_exception"),
    ),
    _rule(_STANDARD, "std::* __gnu_cxx::*"),
    _rule(_RUST, "alloc::* core::* hashbrown::* indexmap::*"),
    _rule(
        "Rust allocation",
        """
        __rust_alloc __rust_alloc_zeroed __rust_realloc __rdl_alloc __rdl_alloc_zeroed __rdl_realloc
        __rg_alloc __rg_alloc_zeroed __rg_realloc __rustc::__rust_* __rustc::__rdl_* __rustc::__rg_*
        """,
    ),
    _rule(
        "C++ libraries",
        """
        boost::container::* boost::make_shared* boost::allocate_shared* boost::unordered::* boost::detail::shared_count*
        absl::container_internal::* absl::inlined_vector_internal::* absl::cord_internal::* absl::Cord::* absl::StrCat*
        folly::fbstring_core* folly::fbvector* folly::f14::* eastl::*
        llvm::SmallVector* llvm::safe_malloc llvm::allocate_buffer llvm::StringMapImpl* llvm::DenseMap*
        llvm::BumpPtrAllocatorImpl* google::protobuf::Arena* google::protobuf::internal::ArenaStringPtr*
        QArrayData::* QTypedArrayData::* QList::* QVector::* QHash::* QMap::* QSet::* QString::* QByteArray::*
        QListData::* QHashData::* QMapDataBase::* QHashPrivate::* QtPrivate::* QtSharedPointer::*
        """,
    ),
    _rule(
        "malloc replacements",
        """
        do_malloc* je_* _rjem_* prof_backtrace_impl tc_malloc* tc_calloc* tc_realloc* tc_memalign* tc_new* tcmalloc::*
        rpmalloc* sn_rust_alloc* mi_malloc* mi_calloc* mi_zalloc* mi_realloc* mi_new*
        """,
    ),
    _rule(
        "glib",
        """
        g_malloc* g_try_malloc* g_realloc* g_try_realloc* g_slice_alloc* g_slice_copy* g_aligned_alloc*
        g_strdup* g_strndup* g_memdup* g_strconcat g_strjoin* g_vasprintf g_rc_box_* g_atomic_rc_box_*
        g_array_* g_ptr_array_* g_byte_array_* g_string_* g_list_* g_slist_* g_queue_* g_hash_table_* g_tree_*
        """,
    ),
    _rule(
        "Python",
        """
        PyMem_Malloc PyMem_Calloc PyMem_Realloc PyMem_RawMalloc PyMem_RawCalloc PyMem_RawRealloc
        PyObject_Malloc PyObject_Calloc PyObject_Realloc _PyObject_Malloc _PyObject_Calloc _PyObject_Realloc
        _PyMem_RawMalloc _PyMem_RawCalloc _PyMem_RawRealloc _PyMem_ArenaAlloc _PyObject_ArenaMalloc
        _PyObject_ArenaMmap _PyObject_Alloc _PyObject_Arena_Alloc pymalloc_alloc pymalloc_realloc
        allocate_from_new_pool new_arena
        """,
    ),
    _rule(
        "Perl, PHP and Ruby",
        """
        safesysmalloc safesyscalloc safesysrealloc Perl_safesysmalloc Perl_safesyscalloc Perl_safesysrealloc
        Perl_savepv Perl_savepvn Perl_savesharedpv S_more_sv Perl_more_sv Perl_more_bodies S_new_body Perl_sv_grow*
        _emalloc* _ecalloc _erealloc* _estrdup _estrndup _safe_emalloc __zend_malloc __zend_calloc zend_mm_*
        ruby_xmalloc* ruby_xcalloc* ruby_xrealloc* objspace_xmalloc* objspace_xcalloc* objspace_xrealloc*
        rb_gc_impl_malloc rb_gc_impl_calloc rb_gc_impl_realloc
        """,
    ),
    _rule(
        "C libraries and servers",
        """
        CRYPTO_malloc CRYPTO_zalloc CRYPTO_realloc CRYPTO_clear_realloc CRYPTO_strdup CRYPTO_strndup CRYPTO_memdup
        sqlite3MemMalloc sqlite3MemRealloc sqlite3Malloc* sqlite3_malloc* sqlite3Realloc sqlite3_realloc*
        sqlite3DbMalloc* sqlite3DbRealloc* mallocWithAlarm dbMallocRawFinish
        palloc palloc0 palloc_extended repalloc pg_malloc* pg_strdup MemoryContextAlloc* MemoryContextStrdup AllocSet*
        apr_palloc* apr_pcalloc* apr_pstrdup* apr_allocator_alloc allocator_alloc
        ngx_alloc ngx_calloc ngx_memalign ngx_palloc* ngx_pnalloc ngx_pcalloc
        uv__malloc uv__calloc uv__realloc uv__strdup evbuffer_chain_new event_mm_malloc_ event_mm_calloc_
        """,
    ),
    _rule("Go", "runtime.mallocgc* runtime.newobject runtime.makeslice* runtime.growslice runtime.newarray"),
)
"""All groups; the first that fits a name applies."""

_OBJECTS: Final = ("libjemalloc", "libtcmalloc", "libmimalloc", "vgpreload_", "libheaptrack_preload")
# Standard libraries call the program through these. If the compiler inlined the program's function, its memory is
# theirs: the functions that call them are schedulers and start code.
_CALL_BACKS: Final = (
    *("::_M_invoke", "::_M_run", "::call_once", "::__rust_begin_short_backtrace"),
    *("::__thread_proxy", "::__func::operator()", "::__call_impl"),  # libc++
)
_ANONYMOUS: Final = "(anonymous namespace)::"
_CRATES: Final = ("alloc::", "core::", "std::", "hashbrown::", "indexmap::")
_STEP: Final = re.compile(r"operator(?:\(\)|\[\]|<=>|<<|>>|->|[<> ])?|->|\(anonymous namespace\)| as |[<>()\[\]{} ]")
# Most names with arguments: nothing before these is a step.
_USUAL: Final = re.compile(r"[^<>()\[\]{} ]++(?<!operator)(?=\((?!anonymous namespace\)))")
_OPENING: Final = frozenset("<([{")
_CLOSING: Final = frozenset(">)]}")
# What matters of a name stands at its beginning, and a name may be as long as a profile is.
_LONGEST_NAME: Final = 8192


class Allocators:
    """Recognises allocation functions by their names.

    Args:
        names: More allocation functions: a name with or without arguments, or a beginning of names followed by `*`.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[str, str] = {}
        self._beginnings: list[tuple[str, str]] = []
        for rule in (AllocatorRule(USER, tuple(names)), *RULES):
            for pattern in rule.patterns:
                if pattern.endswith("*"):
                    self._beginnings.append((pattern[:-1], rule.name))
                else:
                    self._names.setdefault(pattern, rule.name)
        self._any_beginning = tuple(beginning for beginning, _ in self._beginnings)
        self._least_letters = min(map(len, self._any_beginning))
        self._first_letters = {beginning[: self._least_letters] for beginning in self._any_beginning}
        self._owner_of: dict[str, str] = {}

    def rule_of(self, function: str) -> str:
        """Return the name of the rule by which a function, named as shown, is an allocation function; "" for others."""
        owner = self._owner_of.get(function)
        if owner is None:
            owner = self._owner_of[function] = self._find(function)
        return owner

    @staticmethod
    def has_object(path: str) -> bool:
        """Return whether an object is a well-known malloc replacement: all its functions are allocation functions."""
        return path.rpartition("/")[2].startswith(_OBJECTS)

    def _find(self, function: str) -> str:
        allocator = self._match(function)
        if allocator in {USER, _OPERATORS} or not (":" in function or " " in function or "(" in function):
            return allocator
        plain, has_arguments = _plain(function[:_LONGEST_NAME])
        allocator = self._match(plain)
        if not allocator and plain.startswith(_ANONYMOUS):
            allocator = self._match(plain.removeprefix(_ANONYMOUS))
        if allocator == _RUST and has_arguments:
            # A namespace of C++: names of Rust have no arguments.
            return ""
        if function.startswith("<") and _is_of_crates(function[:_LONGEST_NAME]):
            allocator = _RUST
        is_call_back = plain.partition("{{")[0].endswith(_CALL_BACKS)
        return "" if allocator in {_STANDARD, _RUST} and is_call_back else allocator

    def _match(self, name: str) -> str:
        if name in self._names:
            return self._names[name]
        # The first letters of most names are those of no beginning: the comparison with all of these takes longer.
        if name[: self._least_letters] not in self._first_letters or not name.startswith(self._any_beginning):
            return ""
        return next(rule for beginning, rule in self._beginnings if name.startswith(beginning))


def _plain(name: str) -> tuple[str, bool]:
    """Remove return type, template arguments and arguments from a name; return also whether it had arguments."""
    if usual := _USUAL.match(name):
        return usual[0], True
    kept, start, depth = "", 0, 0
    for step in _STEP.finditer(name):
        text = step[0]
        if text in _OPENING:
            if depth == 0:
                kept += name[start : step.start()]
                if text == "(" and kept:
                    return kept, True
            depth += 1
        elif text in _CLOSING:
            depth -= 1
            start = step.end()
        elif text in {" ", " as "} and depth == 0 and not name.startswith("<", step.end()):
            kept, start = "", step.end()
    return (kept + name[start:] if depth <= 0 else kept), False


def _is_of_crates(name: str) -> bool:
    """Return whether `<T as Trait>::function` or `<T>::function` is a function of Rust's standard crates.

    Their traits are implemented by the crate of the type; only traits of `alloc` are implemented there for all types.
    """
    depth, trait_start, end = 0, 0, len(name)
    for step in _STEP.finditer(name):
        depth += (step[0] in _OPENING) - (step[0] in _CLOSING)
        if step[0] == " as " and depth == 1 and not trait_start:
            trait_start = step.end()
        if depth == 0:
            end = step.start()
            break
    subject = name[1 : trait_start - 4 if trait_start else end].lstrip("&*")
    subject = subject.removeprefix("mut ").removeprefix("const ").removeprefix("dyn ")
    is_theirs = subject.startswith((*_CRATES, "[", "(")) or "::" not in subject
    return is_theirs if not trait_start else _of_trait(name[trait_start:end], is_theirs=is_theirs)


def _of_trait(trait: str, *, is_theirs: bool) -> bool:
    # Only these crates have functions of slices, and so traits inside of those.
    return trait.startswith(("alloc::", "<[")) or (is_theirs and trait.startswith(_CRATES))
