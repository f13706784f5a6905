"""Opening what was sealed to a study's key: a NaCl box, or HPKE with X-Wing for one study and one kind of post."""

from __future__ import annotations

from attrs import field, frozen

from anon.errors import Malformed, RejectedProof
from anon.sealing.opening import Opener
from anon.wire.messages import unseal
from anon.wire.packet_v2 import VERSION


@frozen
class StudyOpener:
    """The secret of a study's sealing key, 32 bytes, for packets of one version. Its `repr` shows nothing."""

    version: int
    secret: bytes = field(repr=False)
    _hpke: Opener | None = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_hpke", Opener(self.secret) if self.version == VERSION else None)

    def open(self, sealed_untrusted: bytes, info: bytes) -> bytes:
        """The plaintext of a post. `info`: its study and kind, which version 1 does not bind. Raises `Malformed` for
        whatever does not open."""
        if self._hpke is None:
            return unseal(sealed_untrusted, self.secret)
        try:
            return self._hpke.open(sealed_untrusted, info)
        except RejectedProof:
            raise Malformed("sealed message: cannot be opened with this study's key") from None
