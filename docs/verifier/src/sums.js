// Tellers, their statements and the sums that follow (docs/protocol.md, "Tellers").
import {
  BYTES, INT, LIST, TEXT, compare, decode, demand, fields, isBytes, labelled, number, same, strictlySorted, typeOf, utf8,
} from "./bytes.js";
import { signedBy } from "./chain.js";
import { MODULUS, leaderShare } from "./designs.js";

const ELEMENT = 16;
const PAIRS = [[0, 1], [0, 2], [1, 2]];
const ONION = /^[a-z2-7]{56}\.onion:80$/;
const different = (items) => new Set(items.map((item) => (isBytes(item) ? String(item) : item))).size === items.length;

// The arrangement: tellers, the fewest members of a sum, and all sums.
export function parseArrangement(part) {
  const plain = decode(part);
  demand(Array.isArray(plain), "arrangement: expected a list");
  const spare = plain.length === 5;
  const kinds = spare ? [INT, INT, LIST, LIST, LIST] : [INT, INT, LIST, LIST];
  const [version, minimum, first, ...rest] = fields(plain, kinds, "arrangement");
  demand(version === (spare && rest[0].length ? 3n : 2n), "arrangement: of another version");
  const [second, planned] = spare ? rest : [[], rest[0]];
  const tellers = first.map(entry);
  const seconds = second.map(entry);
  demand(tellers.length >= 2 && tellers.length <= 4, "arrangement: expected two to four tellers");
  for (const what of ["name", "address", "key", "sealing", "commitment"]) {
    demand(different(tellers.map((one) => one[what])), `arrangement: expected a different ${what} of each teller`);
  }
  demand(minimum >= 2n && minimum <= 1_000_000n, "arrangement: an impossible minimum");
  if (seconds.length) demandPairs(tellers, seconds);
  const sums = planned.map(sum);
  demand(sums.length, "arrangement: expected a sum");
  const place = ({ round, slot }) => 256 * round + slot;
  demand(sums.every((one, i) => i === 0 || place(sums[i - 1]) < place(one)), "arrangement: expected each round and slot once, in order");
  demand(sums.every((one) => one.share === sums[0].share), "arrangement: expected shares of the same lengths in all sums");
  return { part, minimum: Number(minimum), tellers, spare: seconds.length > 0, sums };
}

function entry(plain) {
  const [name, address, key, sealing, commitment] = fields(plain, [TEXT, TEXT, BYTES, BYTES, BYTES], "teller");
  const port = /^127\.0\.0\.1:([1-9][0-9]{0,4})$/.exec(address);
  demand(name.length > 0 && [...name].length <= 200, "teller: expected a name");
  demand(ONION.test(address) || (port && Number(port[1]) < 65536), "teller: expected an address");
  demand(key.length === 32 && sealing.length === 1216 && commitment.length === 32, "teller: a key of another length");
  return { name, address, key, sealing, commitment };
}

function demandPairs(tellers, seconds) {
  demand(tellers.length === 3 && seconds.length === 3, "arrangement: a spare is one of three tellers, each with two entries");
  const alike = ({ name, address, key }, i) => name === seconds[i].name && address === seconds[i].address && same(key, seconds[i].key);
  demand(tellers.every(alike), "arrangement: two entries of a teller differ");
  for (const what of ["sealing", "commitment"]) {
    demand(different([...tellers, ...seconds].map((one) => one[what])), `arrangement: expected another ${what} for each pair`);
  }
}

function sum(plain) {
  const [round, slot, kind, parameters, numerator, denominator] = fields(plain, [INT, INT, TEXT, LIST, INT, INT], "sum");
  demand(round >= 0n && round < 65536n && slot >= 0n && slot < 256n, "sum: an impossible round or slot");
  demand(parameters.every((one) => typeOf(one) === INT && one > 0n && one < 1n << 64n), "sum: expected parameters of 1 or more");
  demand([numerator, denominator].every((one) => one > 0n && one < 1n << 64n), "sum: expected a variance above 0");
  demand(common(numerator, denominator) === 1n, "sum: expected a variance in lowest terms");
  return { round: Number(round), slot: Number(slot), kind, parameters, noise: [numerator, denominator], length: lengthOf(kind, parameters), share: leaderShare({ kind, parameters }) };
}

const common = (a, b) => (b ? common(b, a % b) : a);

function lengthOf(kind, parameters) {
  const length = kind === "blocks" ? parameters.slice(1).reduce((all, one) => all + one, 0n) : parameters[1];
  demand((kind === "blocks" && parameters.length >= 2) || (kind === "ball" && parameters.length === 4), "sum: expected blocks or a ball");
  demand(length <= 65536n, "sum: expected a vector of at most 65,536 entries");
  return Number(length);
}

// The tellers that may make a sum together, each with the id that its statements name.
export function quorums(study, arrangement) {
  const { tellers, spare } = arrangement;
  if (!spare) return [{ id: study, keys: tellers.map((teller) => teller.key) }];
  return PAIRS.map((pair, i) => ({ id: labelled("anonml/2/pair", study, Uint8Array.of(i)), keys: pair.map((at) => tellers[at].key) }));
}

export const sharesOf = (arrangement) => (arrangement.spare ? 6 : arrangement.tellers.length);

// Statements

function statement(data, label, kinds, keys) {
  const [body, signature] = fields(data, [BYTES, BYTES], "statement");
  const said = fields(body, kinds, "statement");
  demand(said[0] === 2n, "statement: of another version");
  const teller = Number(said[kinds.length > 4 ? 4 : 2]);
  demand(teller >= 0 && teller < keys.length, "statement: of a teller that is not there");
  demand(signedBy(keys[teller], label, body, signature), "a teller's signature does not verify");
  return said.slice(1);
}

export function checkCountersignatures(body, study, arrangement) {
  const [version, named, statements] = fields(body, [INT, BYTES, LIST], "countersignatures");
  demand(version === 2n && same(named, study), "countersignatures: for another study or version");
  demand(statements.length === arrangement.tellers.length, "countersignatures: expected one of each teller");
  const digest = labelled("anonml/2/countersignature", arrangement.part);
  const keys = arrangement.tellers.map((teller) => teller.key);
  statements.forEach((one, i) => {
    demand(isBytes(one), "countersignatures: expected byte strings");
    const [of, teller, said] = statement(one, "anonml/2/countersignature", [INT, BYTES, INT, BYTES], keys);
    demand(teller === BigInt(i) && same(of, study) && same(said, digest), "a teller countersigned another study");
  });
}

const LIST_SIGNATURE = [INT, BYTES, INT, INT, INT, BYTES];

function listSignature(data, keys) {
  const [id, round, slot, teller, digest] = statement(data, "anonml/2/list-signature", LIST_SIGNATURE, keys);
  demand(id.length === 32 && digest.length === 32, "list signature: an id and a digest have 32 bytes");
  return { id, round: Number(round), slot: Number(slot), teller: Number(teller), digest };
}

// The sum of a round: { values, summed, leftOut }. `tags`: those of its transcript, null where none is published yet.
export function checkSums(study, arrangement, round, body, members, tags) {
  const [version, named, at, rows] = fields(body, [INT, BYTES, INT, LIST], "sums");
  demand(version === 2n && same(named, study) && at === BigInt(round), "sums: of another study, round or version");
  const asked = arrangement.sums.filter((one) => one.round === round);
  demand(rows.length === asked.length && rows.length > 0, "sums: expected the slots of the round");
  return asked.map((planned, i) => checkSlot(study, arrangement, planned, rows[i], members, tags));
}

function checkSlot(study, arrangement, planned, row, members, tags) {
  const [slot, accepted, signatures, shares] = fields(row, [INT, BYTES, LIST, LIST], "sums");
  demand(slot === BigInt(planned.slot), "sums: expected the slots of the round");
  const [version, id, round, of, listed] = fields(accepted, [INT, BYTES, INT, INT, LIST], "list");
  const quorum = quorums(study, arrangement).find((one) => same(one.id, id));
  demand(quorum && version === 2n && round === BigInt(planned.round) && of === slot, "list: of another study, round or slot");
  demand(listed.every((tag) => isBytes(tag) && tag.length === 48) && strictlySorted(listed), "list: expected tags, strictly sorted");
  demand(listed.length >= arrangement.minimum, `list: expected at least ${arrangement.minimum} tags, got ${listed.length}`);
  const { keys } = quorum;
  demand([...signatures, ...shares].every(isBytes), "sums: expected byte strings");
  demand(signatures.length === keys.length && shares.length === keys.length, "sums: expected the words of each teller");
  const digest = labelled("anonml/2/accepted-list", accepted);
  const about = (said, teller) => said.teller === teller && same(said.digest, digest) && same(said.id, id) && said.round === planned.round && said.slot === planned.slot;
  signatures.forEach((one, teller) => demand(about(listSignature(one, keys), teller), "a teller did not sign this list"));
  const vectors = shares.map((one, teller) => {
    const [named, r, s, by, said, share] = statement(one, "anonml/2/noisy-share", [...LIST_SIGNATURE, BYTES], keys);
    const noisy = { id: named, round: Number(r), slot: Number(s), teller: Number(by), digest: said };
    demand(said.length === 32 && about(noisy, teller), "a noisy share is for another list");
    return elements(share, planned.length);
  });
  return { slot: planned.slot, values: added(vectors), summed: listed.length, leftOut: leftOut(listed, members, tags) };
}

function leftOut(listed, members, tags) {
  demand(listed.length <= members, `sums: ${listed.length} vectors of ${members} members`);
  if (tags === null) return 0;
  const published = new Set(tags.map(String));
  const strangers = listed.filter((tag) => !published.has(String(tag))).length;
  demand(strangers === 0, `sums: ${strangers} packets were summed and are in no transcript`);
  return published.size - listed.length;
}

function elements(share, length) {
  demand(share.length === ELEMENT * length, "a share of the sum has another length");
  return Array.from({ length }, (_, i) => {
    const value = number(share.slice(ELEMENT * i, ELEMENT * i + ELEMENT).reverse());
    demand(value < MODULUS, "an element is not below the field's modulus");
    return value;
  });
}

function added(vectors) {
  return vectors[0].map((_, i) => {
    const total = vectors.reduce((all, vector) => all + vector[i], 0n) % MODULUS;
    return total > MODULUS / 2n ? total - MODULUS : total;
  });
}

// The end without a sum

const WHY = ["too-few-packets", "tellers-disagree", "teller-away", "teller-refused"];

export function parseEnd(body, study, arrangement) {
  const [version, named, round, why, evidence] = fields(body, [INT, BYTES, INT, TEXT, BYTES], "end");
  demand(version === 2n && same(named, study) && WHY.includes(why), "end: of another study or version, or for an unknown reason");
  demand(round >= 0n && round < 65536n, "end: an impossible round");
  demand((why === "tellers-disagree") === evidence.length > 0 && evidence.length <= 4096, "end: expected evidence of a disagreement, and of nothing else");
  if (!arrangement) demand(why === "too-few-packets", "end: for a reason that a study without tellers cannot have");
  else {
    demand(arrangement.sums.some((one) => BigInt(one.round) === round), "end: of a round that the study does not have");
    if (evidence.length) checkDisagreement(evidence, study, arrangement, Number(round));
  }
  return { round: Number(round), why };
}

function checkDisagreement(evidence, study, arrangement, round) {
  const [label, first, second] = fields(evidence, [BYTES, BYTES, BYTES], "disagreement");
  demand(same(label, utf8("anonml/2/disagreement")) && compare(first, second) < 0, "disagreement: expected a label and two words, the smaller first");
  const known = quorums(study, arrangement);
  const proves = known.some(({ id, keys }) => {
    try {
      const [one, other] = [first, second].map((data) => listSignature(data, keys));
      const about = same(one.id, id) && one.round === other.round && one.slot === other.slot && same(one.id, other.id);
      return about && !same(one.digest, other.digest) && one.round === round && arrangement.sums.some((sum) => sum.round === one.round && sum.slot === one.slot);
    } catch {
      return false;
    }
  });
  demand(proves, "disagreement: it proves nothing about this round");
}
