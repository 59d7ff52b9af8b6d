"""Allocation functions: their callers are the functions that need the memory."""

from collections.abc import Iterable
from typing import Final

__all__ = ("Allocators",)

_NAMES: Final = frozenset(
    """
    malloc calloc realloc reallocarray memalign aligned_alloc posix_memalign valloc pvalloc strdup strndup
    __libc_malloc __libc_calloc __libc_realloc __libc_memalign __strdup __strndup __GI___strdup
    mmap mmap64 mremap brk sbrk __mmap __mmap64 __brk __sbrk __default_morecore __glibc_morecore
    _int_malloc _int_realloc _int_memalign sysmalloc sysmalloc_mmap new_heap arena_get2 arena_get_retry
    tcache_init tcache_init.part.0 ptmalloc_init malloc_hook_ini realloc_hook_ini memalign_hook_ini
    xmalloc xcalloc xrealloc xstrdup xstrndup xmemdup xzalloc xmallocarray xreallocarray
    PyMem_Malloc PyMem_Calloc PyMem_Realloc PyMem_RawMalloc PyMem_RawCalloc PyMem_RawRealloc
    PyObject_Malloc PyObject_Calloc PyObject_Realloc _PyObject_Malloc _PyObject_Calloc _PyObject_Realloc
    _PyMem_RawMalloc _PyMem_RawCalloc _PyMem_RawRealloc _PyMem_ArenaAlloc _PyObject_ArenaMalloc _PyObject_ArenaMmap
    _PyObject_Alloc _PyObject_Arena_Alloc pymalloc_alloc pymalloc_realloc allocate_from_new_pool new_arena
    CRYPTO_malloc CRYPTO_zalloc CRYPTO_realloc CRYPTO_clear_realloc CRYPTO_strdup CRYPTO_strndup CRYPTO_memdup
    __rust_alloc __rust_alloc_zeroed __rust_realloc __rdl_alloc __rdl_alloc_zeroed __rdl_realloc
    __rg_alloc __rg_alloc_zeroed __rg_realloc
    """.split()  # noqa: SIM905 # a long table of words
)
_PREFIXES: Final = (
    *("operator new(", "operator new[](", "(anonymous namespace)::do_malloc"),
    *"""
    _Znwm _Znam _Znwj _Znaj
    g_malloc g_try_malloc g_realloc g_try_realloc g_slice_alloc g_slice_copy g_aligned_alloc g_strdup g_strndup g_memdup
    je_ tc_malloc tc_calloc tc_realloc tc_memalign tc_new tcmalloc:: mi_malloc mi_calloc mi_zalloc mi_realloc mi_new
    std::allocator< std::allocator_traits< std::__new_allocator< std::__1::allocator< std::__1::__libcpp_allocate
    __gnu_cxx::new_allocator< __gnu_cxx::__alloc_traits< __gnu_cxx::__pool_alloc<
    alloc::alloc:: <alloc::alloc::Global alloc::raw_vec:: <alloc::raw_vec::
    """.split(),  # noqa: SIM905 # a long table of words
)
# The functions of libstdc++ containers that only allocate. Their callers are the functions that grow.
_INSIDE: Final = ("::_M_allocate", "::_M_create_storage(", "::_M_create(", "::_M_get_node(", "::_S_allocate")
_OBJECTS: Final = ("libjemalloc", "libtcmalloc", "libmimalloc", "vgpreload_", "libheaptrack_preload")
_STRINGS: Final = ("std::__cxx11::basic_string<", "std::basic_string<")
_LIBRARY: Final = ("std::", "void std::", "char* std::")


class Allocators:
    """Recognises allocation functions by their names.

    It knows those of the C library and C++, of glib, Python, OpenSSL and Rust, of well-known malloc replacements, and
    common names of wrappers (`xmalloc`).

    Args:
        names: More allocation functions: a name with or without arguments, or a prefix followed by `*`.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        given = list(names)
        self._names = _NAMES.union(name for name in given if not name.endswith("*"))
        self._prefixes = (*_PREFIXES, *(name[:-1] for name in given if name.endswith("*")))
        self._known: dict[str, bool] = {}

    def has(self, function: str) -> bool:
        """Return whether a function is an allocation function, by its demangled name."""
        known = self._known.get(function)
        if known is None:
            known = self._known[function] = self._is_one(function)
        return known

    @staticmethod
    def has_object(path: str) -> bool:
        """Return whether an object is a well-known malloc replacement: all its functions are allocation functions."""
        return path.rpartition("/")[2].startswith(_OBJECTS)

    def _is_one(self, function: str) -> bool:
        # The name of an operator may contain parentheses: `operator()(int)`.
        if function in self._names or function.partition("(")[0] in self._names:
            return True
        if function.startswith(self._prefixes):
            return True
        if not function.startswith(_LIBRARY):
            return False
        # The library contains the string code of all callers: the function that extends a string is the one to charge.
        is_of_string = function[function.index("std::") :].startswith(_STRINGS) and ">::_M_" in function
        return is_of_string or any(part in function for part in _INSIDE)
