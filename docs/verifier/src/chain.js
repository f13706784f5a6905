// Heads, seeds, documents in buckets and what they hold (docs/protocol.md, "Documents and heads", "Documents in buckets").
import { ed25519 } from "@noble/curves/ed25519.js";
import { sha512 } from "@noble/hashes/sha2.js";
import {
  BYTES, INT, LIST, TEXT, concat, decode, demand, encode, fields, isBytes, labelled, number, same, sha256, strictlySorted,
} from "./bytes.js";

export const STUDY = "anonml/1/study";
const HEAD = "anonml/1/head";
const LONGEST_BODY = 64n * 1024n * 1024n;

export const studyId = (manifest) => labelled(STUDY, manifest);
export const bodyDigest = (body) => labelled(HEAD, body);

// Ed25519 as libsodium verifies it: S below the order, neither key nor R of small order, and no cofactor in the equation.
export function verifies(key, message, signature) {
  try {
    demand(key.length === 32 && isBytes(signature) && signature.length === 64, "a key or signature of another length");
    const [shown, answer] = [signature.subarray(0, 32), number(signature.slice(32).reverse())];
    const [A, R] = [key, shown].map((point) => ed25519.Point.fromBytes(point, false));
    demand(answer < ed25519.Point.Fn.ORDER && !A.isSmallOrder() && !R.isSmallOrder(), "a point of small order, or a large S");
    const challenge = number(sha512(concat(shown, key, message)).reverse()) % ed25519.Point.Fn.ORDER;
    const expected = ed25519.Point.BASE.multiplyUnsafe(answer).add(A.negate().multiplyUnsafe(challenge));
    return same(expected.toBytes(), shown);
  } catch {
    return false;
  }
}

export const signedBy = (key, label, body, signature) => verifies(key, labelled(label, body), signature);

export function parseChain(data, key, study) {
  const pairs = decode(data);
  demand(Array.isArray(pairs) && pairs.every((pair) => Array.isArray(pair) && pair.length === 2), "expected a list of [head, signature]");
  let previous = new Uint8Array(32);
  return pairs.map(([head, signature], place) => {
    demand(isBytes(head), "a head is no byte string");
    const found = fields(head, [BYTES, INT, TEXT, INT, INT, BYTES, BYTES], "head");
    const [named, at, kind, part, length, digest, before] = found;
    demand(/^[a-z]{1,11}$/.test(kind), "a head of an impossible kind");
    demand(length >= 0n && length <= LONGEST_BODY && part >= 0n && part < 1n << 32n, "a head of an impossible length or part");
    demand(signedBy(key, HEAD, head, signature), "a head's signature does not verify");
    demand(same(named, study) && at === BigInt(place), "a head is about another study or out of order");
    demand(same(before, previous), "a head does not name the one before");
    previous = labelled(HEAD, head);
    return { number: place, kind, part: Number(part), length: Number(length), digest, own: previous };
  });
}

// Words: five letters for 16 bits.
const CONSONANTS = "bdfghjklmnprstvz";
const VOWELS = "aiou";

function proquints(digest) {
  const words = [];
  for (let k = 0; k < 12; k++) {
    const bits = (digest[2 * k] << 8) | digest[2 * k + 1];
    words.push(CONSONANTS[bits >> 12] + VOWELS[(bits >> 10) & 3] + CONSONANTS[(bits >> 6) & 15] + VOWELS[(bits >> 4) & 3] + CONSONANTS[bits & 15]);
  }
  return words.join("-");
}

export const studyWords = (study) => proquints(labelled("anonml/1/fingerprint", study));
export const headWords = (head) => proquints(labelled("anonml/1/chain-fingerprint", head.own));

export function fingerprints(study, chain) {
  const lines = chain.map((head) => {
    const kind = head.kind === "tellers" ? "the tellers' signatures" : head.kind;
    return `${head.number} ${kind}${head.part ? ` ${head.part}` : ""}: ${headWords(head)}\n`;
  });
  return `study ${studyWords(study)}\n${lines.join("")}`;
}

// Seeds

export const commitment = (value) => labelled("anonml/1/seed-commitment", value);

export function parseSeed(body, study, committed) {
  const [version, named, value] = fields(body, [INT, BYTES, BYTES], "seed");
  const opens = value.length === 32 && same(commitment(value), committed);
  demand(version === 1n && same(named, study) && opens, "the seed does not open its commitment");
  return value;
}

export const studySeed = (manifest, roster, value) => labelled("anonml/1/seed", manifest, roster, value);

// Documents in buckets

// Entries from which on there are several buckets, and entries of each; a test may take fewer.
export const sizes = { threshold: 4096, mean: 256 };

export function bitsOf(count) {
  return count < sizes.threshold ? 0 : Math.max(0, 31 - Math.clz32(Math.floor(count / sizes.mean)));
}

export function bucketOf(key, bits) {
  return bits ? Number(number(labelled("anonml/1/bucket", key).subarray(0, 4)) >> BigInt(32 - bits)) : 0;
}

export const leafHash = (body) => sha256(concat(Uint8Array.of(0), body));
const nodeHash = (left, right) => sha256(concat(Uint8Array.of(1), left, right));

export function rootOf(leaves) {
  if (leaves.length === 0) return sha256(new Uint8Array(0));
  if (leaves.length === 1) return leaves[0];
  let left = 1;
  while (2 * left < leaves.length) left *= 2;
  return nodeHash(rootOf(leaves.slice(0, left)), rootOf(leaves.slice(left)));
}

export function ledTo(leaf, index, count, path) {
  if (index < 0 || index >= count) return null;
  let [place, last, reached] = [index, count - 1, leaf];
  for (const step of path) {
    if (last === 0) return null;
    if (place & 1 || place === last) {
      reached = nodeHash(step, reached);
      while (!(place & 1) && place) [place, last] = [place >> 1, last >> 1];
    } else reached = nodeHash(reached, step);
    [place, last] = [place >> 1, last >> 1];
  }
  return last === 0 ? reached : null;
}

export function parseDocument(body, study, kind, part) {
  const [version, named, of, at, count, bits, last] = fields(body, [INT, BYTES, TEXT, INT, INT, INT, BYTES], kind);
  demand(version === 1n && same(named, study) && of === kind && at === BigInt(part), `${kind}: for another study or document`);
  demand(count >= 0n && count < 1n << 32n, `${kind}: an impossible number of entries`);
  demand(BigInt(bitsOf(Number(count))) === bits && bits <= 24n, `${kind}: its number of buckets is not that of its size`);
  demand(bits === 0n || last.length === 32, `${kind}: a root that is none`);
  const root = bits ? last : leafHash(last);
  return { study, kind, part, count: Number(count), bits: Number(bits), buckets: 1 << Number(bits), root };
}

export function parseBucket(data, document, at) {
  demand(data.length >= 4, "bucket: cut short");
  const size = Number(number(data.subarray(0, 4)));
  demand(size <= data.length - 4 && data.subarray(4 + size).every((byte) => byte === 0), "bucket: wrong padding");
  const [body, path] = fields(data.subarray(4, 4 + size), [BYTES, LIST], "bucket");
  demand(path.every((step) => isBytes(step) && step.length === 32), "bucket: expected a path of hashes");
  const root = ledTo(leafHash(body), at, document.buckets, path);
  demand(root && same(root, document.root), "bucket: it does not lead to the signed root");
}

function listed(body, heading, what) {
  const items = decode(body);
  demand(Array.isArray(items) && items.length === heading.length + 1 && Array.isArray(items.at(-1)), `${what}: another form`);
  demand(same(encode(items.slice(0, -1)), encode(heading)), `${what}: for another study or version`);
  return items.at(-1);
}

export function readRoster(document, at, content) {
  const rows = listed(content, [1, document.study], "roster");
  const sizes = [32, 32, 48];
  const fits = (row) => Array.isArray(row) && row.length === 3 && row.every((one, i) => isBytes(one) && one.length === sizes[i]);
  demand(rows.every(fits), "roster: an entry of another form");
  demand(strictlySorted(rows.map((row) => row[0])), "roster: not strictly sorted by key");
  demand(document.bits || rows.length === document.count, `roster: signed for ${document.count} entries, and it has ${rows.length}`);
  demand(rows.every((row) => bucketOf(row[0], document.bits) === at), "roster: an entry stands in another bucket than its own");
  return rows.map(([key, contribution, point]) => ({ key, contribution, point }));
}

export function readCredentials(study, content, count) {
  const rows = listed(content, [1, study], "credentials");
  demand(rows.length === count, `credentials: expected ${count}, got ${rows.length}`);
  demand(rows.every((row) => isBytes(row) && row.length === 80), "credentials: a signature of another length");
  return rows;
}

export function readTranscript(content, study) {
  const items = fields(content, [INT, BYTES, INT, LIST], "transcript");
  const [version, named, slot, packets] = items;
  demand(version === 1n && same(named, study) && slot >= 0n && slot < 256n, "transcript: for another study, version or slot");
  demand(packets.every(isBytes), "transcript: packets are byte strings");
  return { slot: Number(slot), packets };
}

export const packetDigest = (packet) => labelled("anonml/1/packet-digest", packet);

export function digestList(study, slot, packets) {
  return encode([1, study, slot, packets.map(packetDigest)]);
}

export function hashedBody(document, content) {
  if (document.kind !== "transcript") return content;
  const { slot, packets } = readTranscript(content, document.study);
  demand(slot === document.part, "transcript: a bucket of another slot");
  return digestList(document.study, slot, packets);
}
