"""Words to `AnonML.exe` of the folder for Windows, which has an icon in the tray: bundle/windows/launcher.c."""

from __future__ import annotations

NAME = "AnonML"
"""Of its window and the window's class."""
A_NOTICE, WM_COPYDATA, MILLISECONDS = 2, 0x4A, 5000
ABORT_IF_HUNG = 2


def notified(sentence: str) -> bool:
    """Show a sentence at the icon, and whether there is one that took it. Windows alone."""
    import ctypes
    from ctypes import wintypes

    class Data(ctypes.Structure):
        """The data that Windows copies with such a message."""

        _fields_ = (("kind", wintypes.WPARAM), ("size", wintypes.DWORD), ("content", wintypes.LPCWSTR))

    user = getattr(ctypes, "WinDLL")("user32")  # noqa: B009, which other systems' types do not know
    user.FindWindowW.argtypes, user.FindWindowW.restype = (wintypes.LPCWSTR, wintypes.LPCWSTR), wintypes.HWND
    user.SendMessageTimeoutW.argtypes = (
        wintypes.HWND, wintypes.UINT, wintypes.WPARAM, ctypes.POINTER(Data), wintypes.UINT, wintypes.UINT,
        ctypes.POINTER(wintypes.WPARAM),
    )
    window, taken = user.FindWindowW(NAME, NAME), wintypes.WPARAM()
    data = Data(A_NOTICE, (len(sentence.encode("utf-16-le")) // 2 + 1) * 2, sentence)
    words = (WM_COPYDATA, 0, ctypes.byref(data), ABORT_IF_HUNG, MILLISECONDS, ctypes.byref(taken))
    return bool(window) and bool(user.SendMessageTimeoutW(window, *words)) and bool(taken.value)
