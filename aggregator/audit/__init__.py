"""Checking a whole study from what was published: anyone's to run, on bytes, with nothing but the public documents.

`audit_documents` repeats these steps. Each fault of steps 2 to 8 becomes a `Finding`:

1. Manifest and heads: the manifest is well formed, and every head is signed by its key and names the one before.
   Without that nothing can be checked, and it raises.
2. Bodies: each is there once and has the length and digest of its head.
3. Order and completeness: the documents come in the order of `anon.protocols.kinds`, and each has what it rests on.
   A study that was abandoned had too few members. One that ended without a sum has none of that round, nor later ones.
4. Cost and design: `anon.protocols.registry.check_study` recomputes every epsilon of the manifest. Every teller that it
   names countersigned it. Evidence of two lists is evidence.
5. Enrolments: the number of entries in the roster lies between the manifest's minimum and maximum. The revealed seed
   opens its commitment. Every credential works for its entry of the roster, so
   that nobody was shut out (`anon.transparency.closing`).
6. Packets: each transcript is of one slot and strictly sorted by tag, so that no tag counts twice. Each packet is
   well formed, its draw matches its tag (`aggregator.rules.acceptance`), and its token verifies. No slot has more
   packets than the roster has members.
7. Rounds: each round's document is made again from the transcripts, and compared. Where tellers made it, their
   signatures, the one list and the sum of their shares are checked (`SummingPart.check_sums`). The list is no longer
   than the roster, and every tag on it is in a transcript. Packets that the list leaves out are counted, and are no
   finding. Before the transcripts are published, a round's document is named as not checked.
8. Model: it is learnt again from the published bytes (`aggregator.study.learn`), and compared up to rounding.
9. Report: it is made again, and compared byte by byte. Counts of refusals, which no other document has, are taken from
   the published report and not checked. Another version of this program words a report otherwise. One that differs is
   therefore named as not checked, and is no finding.

All buckets of roster, credentials and transcripts are read, one at a time. Together they must be those of the signed
root, and have as many entries as the document says; every entry must stand in its own. Of many faulty or missing
buckets the first are named, and the others counted.

`audit` does the same with a folder. Each file that stands for a document must hold the signed bytes; every other file
is named as not checked.

The verdict has three levels: all is checked, something is not checked, or there are findings (`Verdict`).

It does not see if packets were left out; a peer finds its own in the transcript (`peer.run.inclusion`). Nor does it see
when packets arrived, or who stands behind the roster's keys.
"""

from aggregator.audit.documents import audit_documents
from aggregator.audit.folder import audit, export, export_bucket
from aggregator.audit.result import AuditResult, Finding, Verdict

__all__ = ["AuditResult", "Finding", "Verdict", "audit", "audit_documents", "export", "export_bucket"]
