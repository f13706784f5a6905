"""One teller's part in its studies: the decisions of `rules`, each in the journal before its result leaves.

Every method may be called again, after a crash or by an impatient aggregator, and gives the same bytes again. Nothing
here waits: a service calls it from a thread of its own, one call at a time.

With a spare a teller is in two pairs (`anon.sharing.quorum`), and serves each like a study of its own. The roster and
the end are those of the study itself: it signs one list of a round and slot, in one pair, and no other in either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from attrs import field

from anon.credential import Tag
from anon.crypto import labels
from anon.crypto.nacl import SigningKey
from anon.crypto.sealing import seal
from anon.crypto.sealing.opening import Opener
from anon.errors import AnonmlError, Conflict, Malformed, Refused, RejectedProof
from anon.sharing.arrangement import (
    Arrangement,
    TellerEntry,
    key_commitment,
    parse_arrangement,
    verification_key,
)
from anon.sharing.quorum import Quorum, parse_quorum, quorums
from anon.sharing.statements import (
    AcceptedList,
    Countersignature,
    Disagreed,
    ListSignature,
    NoisyShare,
    VerifierShares,
    arrangement_digest,
    disagreement_of,
    list_heading,
    parse_disagreement,
    parse_list,
    parse_list_signature,
    parse_verifier_shares,
)
from anon.teller import rules
from anon.teller.journal import Journal, OfferSecrets, Share
from anon.transparency.closing import Bodies
from anon.transparency.fingerprint import teller_words
from anon.values import frozen
from anon.vdaf.prio3 import Prio3
from anon.wire.cbor import encode, sha256
from anon.wire.packets import VERSION, Occasion, Relayed

SECRET_SIZE = 32


@frozen
class BatchAnswer:
    """The answer to a batch: verifier shares of all that was taken, signed for the fellows, and counts of the rest."""

    statement: bytes = field(repr=False)
    refused: Mapping[str, int]


@frozen
class _Study:
    """One study as this teller serves it, or with a spare one pair of it. `teller`: the number in there."""

    quorum: Quorum = field(repr=False)
    teller: int
    offer: OfferSecrets = field(repr=False)
    parts: Mapping[int, bytes] = field(repr=False)
    roll: rules.Roll | None

    @property
    def arrangement(self) -> Arrangement:
        """The tellers that make its sums."""
        return self.quorum.arrangement

    @property
    def place(self) -> int:
        """The place of this teller's share in a packet."""
        return self.quorum.first + self.teller

    def shares_of(self, origin: Occasion) -> list[Occasion]:
        """Where shares of an occasion of the study may be kept: all of them go at once."""
        return [quorum.occasion(origin) for quorum in quorums(self.quorum.study, self.quorum.whole)]

    @property
    def fellows(self) -> list[int]:
        """The other tellers' numbers."""
        return [number for number in range(len(self.arrangement.tellers)) if number != self.teller]

    @property
    def opener(self) -> Opener:
        """Of this study's sealing key."""
        return Opener(self.offer.sealing)

    def verification_key(self) -> bytes:
        """Raises `Refused` until every fellow's part is there: no share is opened before the key is fixed."""
        known = {**self.parts, self.teller: self.offer.part}
        if len(known) != len(self.arrangement.tellers):
            raise Refused("the other tellers' parts of the verification key are missing; pass them on first")
        return verification_key(self.quorum.id, [known[number] for number in sorted(known)])

    def demand_roll(self) -> rules.Roll:
        """Raises `Refused` before the signed roster came."""
        if self.roll is None:
            raise Refused("the signed roster is missing; pass it on first")
        return self.roll


class Teller:
    """`random_bytes` must be the operating system's: keys, noise and the check of credentials are drawn from it."""

    def __init__(self, key: SigningKey, journal: Journal, random_bytes: Callable[[int], bytes]) -> None:
        self._key = key
        self._journal = journal
        self._random_bytes = random_bytes

    @property
    def words(self) -> str:
        """The fingerprint that owners compare with this teller's own place."""
        return teller_words(bytes(self._key.verify_key))

    # Before a study

    def offer(self, name: str, address: str) -> TellerEntry:
        """A fresh entry, for one study's manifest. Raises `InvalidValue` for a name or address that is none."""
        sealing, part = self._random_bytes(SECRET_SIZE), self._random_bytes(SECRET_SIZE)
        key = bytes(self._key.verify_key)
        entry = TellerEntry(name, address, key, Opener(sealing).public_key, key_commitment(key, part))
        self._journal.keep_offer(entry.to_bytes(), OfferSecrets(sealing, part, None))
        return entry

    def countersign(
        self, study: bytes, arrangement_untrusted: bytes, manifest: bytes, most: int | None = None
    ) -> bytes:
        """This teller's word that it serves this study. The caller took both out of the manifest, which is kept.

        Raises `Malformed`, `Refused` if no entry of it is this teller's own or it serves `most` studies already,
        `Conflict` if that entry was countersigned for another study."""
        arrangement = parse_arrangement(arrangement_untrusted)
        number = self._number_in(arrangement)
        for quorum in quorums(study, arrangement):
            if number in quorum.members:
                teller = quorum.members.index(number)
                entry = quorum.arrangement.tellers[teller].to_bytes()
                self._journal.keep_study(quorum.id, quorum.to_bytes(), teller, entry, manifest, most)
        return Countersignature(study, number, arrangement_digest(arrangement)).sign(self._key)

    def key_shares(self, study: bytes) -> Mapping[int, bytes]:
        """For each fellow, this teller's part of the verification key, sealed to it."""
        mine = self._study(study)
        tellers = mine.arrangement.tellers
        return {
            fellow: seal(mine.offer.part, tellers[fellow].sealing_key, _part_info(study, mine.teller, fellow))
            for fellow in mine.fellows
        }

    def take_key_share(self, study: bytes, sender: int, sealed_untrusted: bytes) -> None:
        """A fellow's part. Raises `Malformed`, or `RejectedProof` for one that is not what the manifest commits to."""
        mine = self._study(study)
        if sender not in mine.fellows:
            raise Malformed("key share: of no other teller of the study")
        part = mine.opener.open(sealed_untrusted, _part_info(study, sender, mine.teller))
        entry = mine.arrangement.tellers[sender]
        if len(part) != SECRET_SIZE or key_commitment(entry.key, part) != entry.commitment:
            raise RejectedProof("a teller's part of the verification key is not the one it committed to")
        self._journal.keep_part(study, sender, part)

    def take_roll(self, study: bytes, manifest_untrusted: bytes, heads_untrusted: bytes, bodies: Bodies) -> None:
        """The signed roster, once. Raises what `rules.read_roll` does, and `Conflict` for a second one."""
        quorum, draw = self._study(study).quorum, self._random_bytes
        minimum = quorum.whole.minimum
        roll = rules.read_roll(manifest_untrusted, quorum.study, heads_untrusted, bodies, minimum, draw)
        rules.demand_tokens(roll, quorum.whole)
        self._journal.keep_roll(quorum.study, roll)

    # A sum

    def admit(self, occasion: Occasion, items_untrusted: Sequence[bytes]) -> BatchAnswer:
        """Relayed packets, new or again. Raises `Refused` before key and roster are there, `Conflict` after the list.
        """
        mine = self._study(occasion.study)
        roll, key = mine.demand_roll(), mine.verification_key()
        origin, layout = mine.quorum.origin(occasion), mine.quorum.whole.layout(roll.packets)
        sorted_out = rules.sort_out(
            items_untrusted, partial(self._journal.holder, occasion), origin, mine.place, layout
        )
        prio3, opener = self._prio3(mine, occasion), mine.opener
        refused = Counter(sorted_out.refused)
        shares: dict[bytes, Share] = {}
        for digest, relayed in self._with_good_tokens(roll, sorted_out.fresh, refused):
            if relayed.tag in shares:
                refused[rules.TAG_SPENT] += 1
                continue
            try:
                begun = rules.open_share(relayed, mine.quorum, prio3, opener, key)  # 5., 6.
                shares[relayed.tag] = _share(prio3, relayed.tag, digest, begun)
            except (Malformed, RejectedProof) as error:
                refused[error.code] += 1
        self._journal.keep_shares(occasion, list(shares.values()), origin)  # 7.
        verifiers = self._journal.verifiers(occasion, sorted_out.known | shares.keys())
        return BatchAnswer(VerifierShares(occasion, mine.teller, verifiers).sign(self._key), dict(refused))

    def settle(self, occasion: Occasion, statements_untrusted: Sequence[bytes]) -> frozenset[bytes]:
        """Decide about every packet whose verifier shares came from all fellows, once; those of them that are accepted.

        One statement of each fellow, about the same packets: a packet that one of them leaves out waits. Raises
        `Malformed`, `RejectedProof`, and `Conflict` if a packet was settled by other verifier shares before: more than
        one answer would tell a dishonest fellow about the share.
        """
        mine = self._study(occasion.study)
        prio3, fellows = self._prio3(mine, occasion), _by_fellow(mine, occasion, statements_untrusted)
        context, verdicts = mine.arrangement.context(occasion), dict[bytes, tuple[bytes, bool]]()
        named = set[bytes].intersection(*(set(said) for said in fellows.values()))
        for share in self._journal.shares(occasion, sorted(named)):
            given = {**{number: said[share.tag] for number, said in fellows.items()}, mine.teller: share.verifier}
            verifiers = [verifier for _, verifier in sorted(given.items())]
            message = sha256(labels.VERIFIER_SHARES, *verifiers)
            if share.message is None:
                valid = rules.is_valid(prio3, context, _joint_seed(share), verifiers)
                verdicts[share.tag] = (message, valid)
            elif share.message != message:
                raise Conflict("a second verifier share of one packet; the first one holds")
        self._journal.keep_verdicts(occasion, verdicts, mine.quorum.origin(occasion))
        return self._journal.accepted_of(occasion, named)

    def accepted(self, occasion: Occasion) -> frozenset[bytes]:
        """Every tag accepted so far: an aggregator that begins anew relays none of these packets again."""
        self._study(occasion.study)
        return self._journal.accepted(occasion)

    def sign_list(self, occasion: Occasion, list_untrusted: bytes) -> bytes:
        """The one list. Raises `Malformed`, `Refused`, `Conflict` for a second one, also one of another pair."""
        mine = self._study(occasion.study)
        origin = mine.quorum.origin(occasion)
        end = self._journal.end(origin)
        if end.list is None:
            accepted = self._journal.accepted(occasion)
            members = mine.demand_roll().members
            rules.check_list(list_untrusted, occasion, accepted, mine.arrangement.minimum, members)
        self._journal.keep_list(origin, list_untrusted)  # 4.
        return ListSignature(occasion, mine.teller, parse_list(list_untrusted, occasion).digest()).sign(self._key)

    def add_noise(self, occasion: Occasion, signatures_untrusted: Sequence[bytes]) -> bytes:
        """The noisy share, once, after every fellow signed the one list.

        Raises `Malformed`, `RejectedProof`, `Refused` while a fellow or the list is missing, `Disagreed` if a fellow
        signed another list: then there is never a sum.
        """
        mine = self._study(occasion.study)
        origin = mine.quorum.origin(occasion)
        end = self._journal.end(origin)
        if end.list is not None and list_heading(end.list) != occasion:
            raise Conflict("this teller signed the list of another pair of tellers; it signs no second one")
        if end.evidence is not None:
            raise Disagreed(parse_disagreement(end.evidence, mine.quorum.study, mine.quorum.whole))
        if end.list is None:
            raise Refused("no list was signed for this round and slot")
        accepted = parse_list(end.list, occasion)
        self._demand_agreement(mine, accepted, signatures_untrusted)
        if end.noisy is not None:
            return end.noisy
        prio3, asked = self._prio3(mine, occasion), mine.arrangement.sum_of(occasion)
        share = rules.noisy_share(prio3, asked, self._journal.outputs(occasion, accepted.tags), self._random_bytes)
        statement = NoisyShare(occasion, mine.teller, accepted.digest(), share).sign(self._key)
        return self._journal.keep_noisy(origin, statement, mine.shares_of(origin))

    def finish(self, study: bytes, ended: int) -> None:
        """The study's end (unix seconds), or this teller's part in it: its keys and shares are erased, of both pairs.
        All that was signed stays."""
        kept = self._journal.study(study)
        quorum = None if kept is None else parse_quorum(study, kept[0])
        erased = [study] if quorum is None else [each.id for each in quorums(quorum.study, quorum.whole)]
        self._journal.erase(erased, ended)

    # Parts

    def _study(self, study: bytes) -> _Study:
        kept = self._journal.study(study)
        if kept is None:
            raise Refused("this teller did not countersign the study")
        quorum, teller = parse_quorum(study, kept[0]), kept[1]
        offer = self._journal.offer(quorum.arrangement.tellers[teller].to_bytes())
        if offer is None or not offer.sealing:
            raise Refused("the study is over for this teller: its keys were erased, at its end or by who runs it")
        return _Study(quorum, teller, offer, self._journal.parts(study), self._journal.roll(quorum.study))

    def _number_in(self, arrangement: Arrangement) -> int:
        """This teller's number: all of its entries are its own offers. Raises `Refused`."""
        for number, entry in enumerate(arrangement.tellers):
            entries = (entry, *arrangement.second[number : number + 1])
            if all(self._journal.offer(offered.to_bytes()) is not None for offered in entries):
                return number
        raise Refused("none of the study's tellers is this one; ask it for an offer, and name it as it is")

    def _prio3(self, mine: _Study, occasion: Occasion) -> Prio3:
        return mine.arrangement.prio3(mine.arrangement.sum_of(occasion))

    def _with_good_tokens(
        self, roll: rules.Roll, fresh: Mapping[bytes, Relayed], refused: Counter[str]
    ) -> list[tuple[bytes, Relayed]]:
        """Step 4, for a whole batch."""
        items = [relayed.token_item() for relayed in fresh.values()]
        verdicts: list[Tag | AnonmlError] = roll.verifier.check_batch(items, self._random_bytes)
        good = []
        for (digest, relayed), verdict in zip(fresh.items(), verdicts, strict=True):
            if isinstance(verdict, AnonmlError):
                refused[verdict.code] += 1
            else:
                good.append((digest, relayed))
        return good

    def _demand_agreement(self, mine: _Study, accepted: AcceptedList, signatures_untrusted: Sequence[bytes]) -> None:
        """Every fellow signed the list that this teller signed."""
        own = ListSignature(accepted.occasion, mine.teller, accepted.digest())
        agreed = set()
        for statement in signatures_untrusted:
            signed = parse_list_signature(statement, mine.arrangement)
            if signed.occasion != accepted.occasion:
                raise Malformed("list signature: of another round or slot")
            if signed.digest != own.digest:
                evidence = disagreement_of(own.sign(self._key), statement, mine.arrangement)
                origin = mine.quorum.origin(accepted.occasion)
                self._journal.stop(origin, evidence.to_bytes(), mine.shares_of(origin))
                raise Disagreed(evidence)
            agreed.add(signed.teller)
        if not agreed.issuperset(mine.fellows):
            raise Refused("another teller's signature of the list is missing; nothing leaves before it is there")


def _part_info(study: bytes, sender: int, recipient: int) -> bytes:
    """The purpose that a part of the verification key is sealed for."""
    return encode([labels.KEY_SHARE, VERSION, study, sender, recipient])


def _share(prio3: Prio3, tag: bytes, digest: bytes, begun: rules.PreparedPacket) -> Share:
    """A packet's row."""
    output = prio3.circuit.field.encode(begun.state.output_share)
    return Share(tag, digest, begun.verifier, begun.state.joint_seed, output)


def _joint_seed(share: Share) -> bytes:
    """A packet's joint randomness, as it was kept. Raises `Malformed` for a damaged state."""
    if share.seed is None or share.output is None:
        raise Malformed("share: its state is missing in the journal")
    return share.seed


def _by_fellow(
    mine: _Study, occasion: Occasion, statements_untrusted: Sequence[bytes]
) -> Mapping[int, Mapping[bytes, bytes]]:
    """By fellow and tag, the verifier shares; one statement of each, in the fellows' order."""
    if len(statements_untrusted) != len(mine.fellows):
        raise Malformed(f"verifier shares: expected {len(mine.fellows)} statements, got {len(statements_untrusted)}")
    return {
        fellow: parse_verifier_shares(statement, occasion, fellow, mine.arrangement).shares
        for fellow, statement in zip(mine.fellows, statements_untrusted, strict=True)
    }
