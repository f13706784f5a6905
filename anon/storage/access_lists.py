"""The access list of a file or folder on Windows, in place of a mode: for its owner, the system and administrators.

The list is protected: it takes nothing from the folder above. A folder hands it to all that is made below it. The
system and administrators can take any file there, as root can elsewhere. The user's own name stands in it, and not the
owner's rights: a file that was made as an administrator is owned by all of them.

Not protected: files on a file system that keeps no lists, such as a stick's.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    import msvcrt
    import os
    import re
    from ctypes import wintypes
    from functools import cache
    from pathlib import Path

    READ, WRITE, SHARED, NORMAL = 0x80000000, 0x40000000, 0x3, 0x80
    CREATE_NEW, OPEN_ALWAYS, ALREADY_EXISTS = 1, 4, 183
    QUERY, USER = 0x8, 1
    FILE_OBJECT, LIST, PROTECTED = 1, 0x4, 0x80000000
    KEEPS_LISTS = 0x8
    LONGEST_PATH = 2**15
    ON_FILES, ON_FOLDERS = "", "OICI"
    """Which of what is made below inherits it: nothing, or files and folders."""
    _TRUSTEE = re.compile(r"\((?:[^;()]*;){5}([^;()]*)")

    class _SecurityAttributes(ctypes.Structure):
        _fields_ = (("size", wintypes.DWORD), ("descriptor", ctypes.c_void_p), ("inherited", wintypes.BOOL))

    @cache
    def _kernel() -> ctypes.WinDLL:
        found = ctypes.WinDLL("kernel32", use_last_error=True)
        found.GetCurrentProcess.restype = found.CreateFileW.restype = wintypes.HANDLE
        found.CreateFileW.argtypes = (
            wintypes.LPCWSTR, wintypes.DWORD, wintypes.DWORD, ctypes.c_void_p, wintypes.DWORD, wintypes.DWORD,
            wintypes.HANDLE,
        )  # fmt: skip
        found.CloseHandle.argtypes = found.LocalFree.argtypes = (wintypes.HANDLE,)
        return found

    @cache
    def _rights() -> ctypes.WinDLL:
        found = ctypes.WinDLL("advapi32", use_last_error=True)
        found.OpenProcessToken.argtypes = (wintypes.HANDLE, wintypes.DWORD, ctypes.c_void_p)
        found.SetFileSecurityW.argtypes = (wintypes.LPCWSTR, wintypes.DWORD, ctypes.c_void_p)
        return found

    def opened(path: Path, flags: int, new: bool) -> int:
        """A descriptor of a new file to write to, or else of one that may be there, to read and write. A new one has
        the list from the first moment. `flags`: of `os.open`. Raises `OSError`, and `FileExistsError` for a new one."""
        attributes = _SecurityAttributes(ctypes.sizeof(_SecurityAttributes), _descriptor(ON_FILES), False)
        access, way = (WRITE, CREATE_NEW) if new else (READ | WRITE, OPEN_ALWAYS)
        handle = _kernel().CreateFileW(str(path), access, SHARED, ctypes.byref(attributes), way, NORMAL, None)
        code = ctypes.get_last_error()
        if handle in (None, wintypes.HANDLE(-1).value):
            raise _fault(code, path)
        descriptor = msvcrt.open_osfhandle(handle, flags | (os.O_WRONLY if new else os.O_RDWR))
        if code == ALREADY_EXISTS:
            try:
                close_to_others(path, ON_FILES)
            except BaseException:
                os.close(descriptor)
                raise
        return descriptor

    def close_to_others(path: Path, inheriting: str) -> bool:
        """Give a file or folder the list where its own names others; True if it did. Raises `OSError`."""
        named = trustees(path)
        if (named and named <= _own()) or not _keeps_lists(path):
            return False
        _done(_rights().SetFileSecurityW(str(path), LIST | PROTECTED, ctypes.c_void_p(_descriptor(inheriting))), path)
        return True

    def trustees(path: Path) -> frozenset[str]:
        """All whom the list of a file or folder names, as SDDL has them; none where everybody may do all. Raises
        `OSError`."""
        described = ctypes.c_void_p()
        code = _rights().GetNamedSecurityInfoW(
            str(path), FILE_OBJECT, LIST, None, None, None, None, ctypes.byref(described)
        )
        if code:
            raise _fault(code, path)
        try:
            return _named(described)
        finally:
            _kernel().LocalFree(described)

    def _named(described: ctypes.c_void_p) -> frozenset[str]:
        text = wintypes.LPWSTR()
        _done(
            _rights().ConvertSecurityDescriptorToStringSecurityDescriptorW(
                described, 1, LIST, ctypes.byref(text), None
            )
        )
        try:
            return frozenset(_TRUSTEE.findall(text.value or ""))
        finally:
            _kernel().LocalFree(ctypes.cast(text, ctypes.c_void_p))

    @cache
    def _own() -> frozenset[str]:
        return _named(ctypes.c_void_p(_descriptor(ON_FILES)))

    @cache
    def _descriptor(inheriting: str) -> int:
        """The address of the list, kept for ever."""
        allowed = "".join(f"(A;{inheriting};FA;;;{who})" for who in ("SY", "BA", _user()))
        made = ctypes.c_void_p()
        convert = _rights().ConvertStringSecurityDescriptorToSecurityDescriptorW
        _done(convert(f"D:P{allowed}", 1, ctypes.byref(made), None))
        assert made.value is not None
        return made.value

    @cache
    def _user() -> str:
        """The identifier of this program's user."""
        token, size, text = wintypes.HANDLE(), wintypes.DWORD(), wintypes.LPWSTR()
        _done(_rights().OpenProcessToken(_kernel().GetCurrentProcess(), QUERY, ctypes.byref(token)))
        try:
            _rights().GetTokenInformation(token, USER, None, 0, ctypes.byref(size))
            told = ctypes.create_string_buffer(size.value)
            _done(_rights().GetTokenInformation(token, USER, told, size, ctypes.byref(size)))
        finally:
            _kernel().CloseHandle(token)
        identifier = ctypes.cast(told, ctypes.POINTER(ctypes.c_void_p))[0]
        _done(_rights().ConvertSidToStringSidW(ctypes.c_void_p(identifier), ctypes.byref(text)))
        try:
            return str(text.value)
        finally:
            _kernel().LocalFree(ctypes.cast(text, ctypes.c_void_p))

    def _keeps_lists(path: Path) -> bool:
        """True where the file system under a path keeps lists."""
        volume, kept = ctypes.create_unicode_buffer(LONGEST_PATH), wintypes.DWORD()
        _done(_kernel().GetVolumePathNameW(str(path), volume, LONGEST_PATH), path)
        told = _kernel().GetVolumeInformationW(volume, None, 0, None, None, ctypes.byref(kept), None, 0)
        return not told or bool(kept.value & KEEPS_LISTS)

    def _done(result: int, path: Path | None = None) -> None:
        if not result:
            raise _fault(ctypes.get_last_error(), path)

    def _fault(code: int, path: Path | None) -> OSError:
        return OSError(None, ctypes.FormatError(code).strip(), None if path is None else str(path), code)
