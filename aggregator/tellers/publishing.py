"""Before a study is published: its tellers' countersignatures, and the key that all of them share."""

from __future__ import annotations

from collections.abc import Mapping

from aggregator.tellers import walk
from aggregator.tellers.study_tellers import LinkTo, links_of
from anon.protocols.tellers import tellers_of
from anon.sharing.statements import encode_countersignatures
from anon.study.manifest import Manifest


async def tellers_ready(manifest: Manifest, link_to: LinkTo) -> Mapping[str, bytes]:
    """The documents that a study's tellers add to its manifest; none for a study without tellers.

    They have countersigned and share a verification key then, so that a published study can be summed. Raises
    `TellerAway`, `TellerRefuses`. An entry that was countersigned serves no other study.
    """
    arrangement = tellers_of(manifest)
    if arrangement is None:
        return {}
    links, study = links_of(arrangement, link_to), manifest.study_id
    statements = await walk.countersigned(links, arrangement, study, manifest.to_bytes())
    await walk.share_keys(links, arrangement, study)
    return {"tellers": encode_countersignatures(study, statements)}
