"""Links whose studies wait for the owner's answer, through restarts. A link holds an admission's code. So it lies in
the store as other secrets do, under the passphrase if there is one. It is erased with a yes or a no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

from anon.wire.invite import Invite, parse_invite
from peer.rules.study_secrets import Vault
from peer.store.store import Store


class WaitingLinks(MutableMapping[bytes, Invite]):
    """Study -> its link, the newest last. Nothing is kept in memory, so programs that share a home see the same.

    `vault` is the home's at the moment: a passphrase may be set meanwhile.
    """

    def __init__(self, store: Store, vault: Callable[[], Vault]) -> None:
        self._store, self._vault = store, vault

    def __getitem__(self, study: bytes) -> Invite:
        return parse_invite(self._vault().open(dict(self._store.waiting())[study]).decode())

    def __setitem__(self, study: bytes, invite: Invite) -> None:
        self._store.wait(study, self._vault().close(invite.link().encode()))

    def __delitem__(self, study: bytes) -> None:
        if study not in dict(self._store.waiting()):
            raise KeyError(study)
        self._store.wait(study, None)

    def __iter__(self) -> Iterator[bytes]:
        return iter([study for study, _ in self._store.waiting()])

    def __len__(self) -> int:
        return len(self._store.waiting())
