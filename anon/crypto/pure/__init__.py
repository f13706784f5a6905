"""The twins in Python of native cryptography, for machines that those libraries have no build for.

The curve, NaCl and sealing: the same names and bytes. **Not constant-time.** A program may come without this
folder: delete it, and say so by `HAS_PURE` in `anon.crypto.backend`.
"""
