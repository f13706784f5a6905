"""PyNaCl's two errors."""


class CryptoError(Exception):
    """A box does not open, or a key is of a kind that no box is made for."""


class BadSignatureError(CryptoError):
    """A signature does not verify."""
