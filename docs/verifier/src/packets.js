// Published packets and the draw (docs/protocol.md, "A packet, byte by byte", "The draw").
import { BYTES, Fault, INT, LIST, demand, encode, fields, isBytes, labelled, number, same, spelled, strictlySorted } from "./bytes.js";
import { bucketOf, readTranscript } from "./chain.js";

export const occasionOf = (study, round, slot) => [2, study, round, slot];
export const contextOf = (occasion) => labelled("anonml/2/occasion", encode(occasion));

export function parsePacket(plaintext) {
  const found = fields(plaintext, [INT, BYTES, INT, INT, INT, BYTES, LIST, BYTES], "packet");
  const [version, study, round, slot, survey, report, digests, token] = found;
  demand(version === 2n && study.length === 32, "packet: another version or study");
  demand(round >= 0n && round < 65536n && slot >= 0n && slot < 256n, "packet: an impossible round or slot");
  demand(survey >= 0n && survey < 65536n && digests.length <= 6, "packet: an impossible survey, or too many shares");
  demand(digests.every((digest) => isBytes(digest) && digest.length === 32), "packet: a digest has 32 bytes");
  return { study, round: Number(round), slot: Number(slot), survey: Number(survey), report, digests, token, tag: token.subarray(0, 48) };
}

export function presentationOf(packet) {
  const { study, round, slot, survey, report, digests } = packet;
  return labelled("anonml/2/presentation", encode([2, study, round, slot, survey, report, digests]));
}

export function readPackets(document, at, content) {
  const { slot, packets } = readTranscript(content, document.study);
  demand(slot === document.part, "transcript: a bucket of another slot");
  const read = packets.map(parsePacket);
  demand(read.every((packet) => packet.slot === document.part), "transcript: a packet of another slot");
  demand(strictlySorted(read.map((packet) => packet.tag)), "transcript: a bucket is not strictly sorted by tag");
  demand(read.every((packet) => bucketOf(packet.tag, document.bits) === at), "transcript: a packet stands in another bucket than its own");
  return read;
}

export function drawn(slot, seed, tag) {
  const digest = labelled("anonml/1/draw", seed, spelled(slot.slot, 2), tag);
  const total = slot.rows.reduce((sum, row) => sum + row.weight, 0);
  let point = (number(digest.subarray(0, 16)) * BigInt(total)) >> 128n;
  for (const row of slot.rows) {
    if (point < BigInt(row.weight)) return row.survey;
    point -= BigInt(row.weight);
  }
  throw new Error("a point below the total meets a row");
}

export function onlyScores(value, tag, share) {
  const point = number(labelled("anonml/1/score", value, tag).subarray(0, 8));
  return point < BigInt(share * 2 ** 64);
}

// True for bytes that are a report of the survey.
export function fits(survey, report) {
  try {
    return survey.demandReport(report);
  } catch (error) {
    if (error instanceof Fault) return false;
    throw error;
  }
}

// The steps for one packet of a study, but for its token.
export function checkPacket(manifest, packet, seed) {
  demand(same(packet.study, manifest.id), "wrong-study");
  demand(packet.token.length === manifest.tokenSize && packet.digests.length === manifest.shares, "malformed");
  const slot = manifest.slots[packet.slot];
  demand(slot && packet.round === slot.round, "unknown-slot");
  const survey = manifest.surveys[packet.survey];
  demand(survey, "unknown-survey");
  demand(drawn(slot, seed, packet.tag) === packet.survey, "wrong-draw");
  demand(fits(survey, packet.report), "malformed-report");
}
