"""Opening what was sealed to a study's key by HPKE with X-Wing, for one study and one kind of post."""

from __future__ import annotations

from attrs import field, frozen

from anon.crypto.sealing.opening import Opener
from anon.errors import Malformed, RejectedProof


@frozen
class StudyOpener:
    """The secret of a study's sealing key, 32 bytes. Its `repr` shows nothing."""

    secret: bytes = field(repr=False)
    _hpke: Opener = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_hpke", Opener(self.secret))

    def open(self, sealed_untrusted: bytes, info: bytes) -> bytes:
        """The plaintext of a post. `info`: its study and kind. Raises `Malformed` for whatever does not open."""
        try:
            return self._hpke.open(sealed_untrusted, info)
        except RejectedProof:
            raise Malformed("sealed message: cannot be opened with this study's key") from None
