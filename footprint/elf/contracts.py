"""What functions of glibc and libstdc++ do with the addresses that they are given, as their contracts say.

Listed are functions that keep no address, and whose answers depend on nothing but what lies there. One that is not
listed may do anything; so may one of another library, whatever its name.

Sources: C11, chapter 7; POSIX.1-2017; glibc manual 2.36; Itanium C++ ABI, chapter 5.1 (mangling).
"""

import re
from functools import cache
from typing import Final

from footprint.members import lazy_pattern

READ: Final = "r"
READ_AS_BYTES: Final = "b"
"""Read, with all that lies there: addresses there are copied or compared as well."""
READ_AND_RETURNED: Final = "f"
"""Read, and an address in it, or its own, is returned."""
WRITTEN: Final = "w"
NUMBER: Final = "n"
"""A number, or an address that the function may keep."""
FORMAT: Final = "%"
"""A format, which is read and says what the arguments behind it are."""

# A letter for each argument.
_OF_C: Final = {
    name: contract
    for contract, names in (
        (
            "r",
            "strlen wcslen atoi atol atoll atof puts perror getenv secure_getenv unlink remove rmdir chdir textdomain",
        ),
        ("r", "strdup __strdup wcsdup"),
        ("rn", "strnlen strndup __strndup fputs fputs_unlocked access mkdir dlopen"),
        ("rr", "strcmp strcasecmp strcoll strspn strcspn wcscmp fopen fopen64 rename bindtextdomain"),
        ("rrn", "strncmp strncasecmp wcsncmp"),
        ("rw", "stat stat64 lstat lstat64"),
        ("rnn", "open open64"),
        ("nrnn", "openat openat64"),
        ("nr", "setlocale dlsym"),
        ("nrw", "__xstat __xstat64 __lxstat __lxstat64"),
        ("rrnr", "__assert_fail"),
        ("bbn", "memcmp bcmp wmemcmp"),
        ("bnnn", "fwrite fwrite_unlocked"),
        ("nbn", "write"),
        ("fn", "strchr strrchr strchrnul index rindex rawmemchr wcschr wcsrchr"),
        ("fr", "strstr strpbrk strcasestr wcsstr"),
        ("fnn", "memchr memrchr wmemchr"),
        ("fnrn", "memmem"),
        ("f", "gettext"),
        ("rf", "dgettext"),
        ("rfn", "dcgettext"),
        ("ffn", "ngettext"),
        ("wbn", "memcpy memmove mempcpy wmemcpy"),
        ("wbnn", "__memcpy_chk __memmove_chk __mempcpy_chk"),
        ("wr", "strcpy strcat stpcpy wcscpy"),
        ("wrn", "strncpy strncat stpncpy strxfrm __strcpy_chk __strcat_chk __stpcpy_chk"),
        ("wrnn", "__strncpy_chk __strncat_chk __stpncpy_chk"),
        ("wnn", "memset fgets"),
        ("wnnn", "fread __memset_chk"),
        ("nwn", "read"),
        ("%", "printf warn warnx"),
        ("n%", "fprintf dprintf err errx syslog asprintf __printf_chk"),
        ("nn%", "error __fprintf_chk __dprintf_chk __syslog_chk __asprintf_chk"),
        ("w%", "sprintf"),
        ("wn%", "snprintf"),
        ("wnn%", "__sprintf_chk"),
        ("wnnn%", "__snprintf_chk"),
        # The arguments of these lie in memory already.
        ("rn", "vprintf vwarn vwarnx"),
        ("nrn", "vfprintf vdprintf vasprintf vsyslog verr verrx __vprintf_chk"),
        ("nnrn", "__vfprintf_chk __vdprintf_chk __vasprintf_chk"),
        ("wnrn", "vsnprintf"),
        ("wnnnrn", "__vsnprintf_chk"),
    )
    for name in names.split()
}
_OF_CXX: Final = (
    (r"_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PK[ach]", "nr"),
    (r"_ZStlsIwSt11char_traitsIwEERSt13basic_ostreamIT_T0_ES6_PK(?:S3_|c)", "nr"),
    (r"_ZSt16__ostream_insertI([cw])St11char_traitsI\1EERSt13basic_ostreamIT_T0_ES6_PKS3_l", "nrn"),
    (r"_ZNSo5writeEPKcl|_ZNSt13basic_ostreamIwSt11char_traitsIwEE5writeEPKwl", "nrn"),
    (r"_ZSt24__throw_out_of_range_fmtPKcz", "rnnnnn"),
    (r"_ZSt\d+__throw_\w+PKc", "r"),
    (r"_ZNSt(?:\d+(?:runtime|logic|range|overflow|underflow|domain|length)_error)C[12]EPKc", "nr"),
    (r"_ZNSt(?:12out_of_range|16invalid_argument)C[12]EPKc", "nr"),
    (r"_ZNSt1[34]basic_[io]?f\w+(?:4open|C[12])EPKcSt13_Ios_Openmode", "nrn"),
    (r"_ZSt11_Hash_bytesPKvmm", "bnn"),
    (r"_ZNSt7__cxx1112basic_stringI([cw])\w+12_M_constructIPK\1EEvT_S8_St20forward_iterator_tag", "nrr"),
)
# Members of std::string that take a text, and copy or compare it.
_OF_STRING: Final = lazy_pattern(
    r"_ZNK?S(?:s|t7__cxx1112basic_stringI([cw])St11char_traitsI\1ESaI\1EE)"
    r"(?:C[12]|aS|pL|6(?:append|assign|insert)|7(?:compare|replace)|4find|5rfind|13find_first_of|12find_last_of"
    r"|17find_first_not_of|16find_last_not_of|9_M_append|10_M_replace)E((?:PK[cw]|m|[cw]|RKS\d*_|RKSaI[cw]E)+)\Z"
)
_PARAMETER: Final = lazy_pattern(r"PK[cw]|m|[cw]|RKS\d*_|RKSaI[cw]E")
_LIBRARIES: Final = (
    (lazy_pattern(r"lib(?:c|m|dl|pthread|rt)\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1"), ("GLIBC_",)),
    (lazy_pattern(r"libstdc\+\+\.so\.6"), ("GLIBCXX_", "CXXABI_")),
)
# C11, 7.1.3 and 7.31: no program may define another function of such a name; nor one in the namespace std.
_RESERVED: Final = lazy_pattern(
    r"(?:mem|str|wcs)[a-z]|wmem|__|_ZNK?S|_ZSt|v?[fs]?n?printf|f?puts|perror|getenv|remove|rename|ato[fil]l?|fopen"
    r"|fwrite|fread|fgets|setlocale"
)
_CONVERSION: Final = lazy_pattern(
    rb"%(?:(?P<position>\d+)\$)?[-+ #0'I]*(?P<width>\*(?:\d+\$)?|\d*)(?:\.(?P<precision>\*(?:\d+\$)?|\d*))?"
    rb"(?P<size>hh|h|ll|l|q|L|j|z|Z|t)?(?P<letter>.)",
    re.DOTALL,
)
_OF_NUMBERS: Final = b"diouxXcCpn"
_OF_TEXTS: Final = b"sS"
_OF_FRACTIONS: Final = b"aAeEfFgG"
_WITHOUT_ARGUMENT: Final = b"m%"


def is_library_version(file: str, version: str) -> bool:
    """Return whether a version that a file of some name must define is one of glibc or libstdc++."""
    return any(name.fullmatch(file) and version.startswith(versions) for name, versions in _LIBRARIES)


def is_reserved(name: str) -> bool:
    """Return whether a function with this name can only be that of the standard library."""
    match = _RESERVED.match(name)
    return match is not None and (match[0].startswith(("_", "mem", "str", "wcs", "wmem")) or match[0] == name)


@cache
def function_contract(name: str) -> str | None:
    """Return what a function does with each of its arguments, a letter for each; None where that is not known."""
    if not name.startswith("_Z"):
        return _OF_C.get(name)
    string = _OF_STRING.match(name)
    if string is not None:
        parameters = _PARAMETER.findall(string[2])
        return NUMBER + "".join(READ if parameter.startswith("PK") else NUMBER for parameter in parameters)
    return next((contract for pattern, contract in _OF_CXX if re.fullmatch(pattern, name)), None)


def conversions(text: bytes) -> str | None:
    """Return what a format does with each argument behind it that is no floating-point number, a letter for each.

    None where it takes its arguments by their positions, or has a conversion that is not of the C standard.
    """
    letters = ""
    at = text.find(b"%")
    while at >= 0:
        conversion = _CONVERSION.match(text, at)
        if conversion is None or conversion["position"] is not None:
            return None
        letter = conversion["letter"]
        if b"$" in conversion[0]:
            return None
        if letter in _WITHOUT_ARGUMENT:
            pass
        else:
            letters += NUMBER * sum(conversion[name] == b"*" for name in ("width", "precision"))
            if letter in _OF_TEXTS:
                letters += READ
            elif letter in _OF_NUMBERS:
                letters += NUMBER
            elif letter not in _OF_FRACTIONS:
                return None
        at = text.find(b"%", conversion.end())
    return letters
