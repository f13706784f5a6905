// Pages of what members wrote: each packet at its place, and its open text (docs/protocol.md, "Written surveys and letters").
import { BYTES, INT, LIST, compare, concat, decode, demand, fields, hex, isBytes, same, sha256 } from "./bytes.js";
import { packetDigest } from "./chain.js";
import { fits, parsePacket } from "./packets.js";

// A round's page: { packets, digest, texts }. A packet has its plaintext; texts are by survey and by tag in hexadecimal.
export function readPage(study, round, body) {
  const [version, named, at, plaintexts] = fields(body, [INT, BYTES, INT, LIST], "page");
  demand(version === 1n && same(named, study.id) && at === BigInt(round), "page: for another study, round or version");
  demand(plaintexts.every(isBytes), "page: packets are byte strings");
  const packets = plaintexts.map((plaintext) => ({ ...parsePacket(plaintext), plaintext, digest: packetDigest(plaintext) }));
  const ordered = (a, b) => a.survey < b.survey || (a.survey === b.survey && compare(a.tag, b.tag) < 0);
  demand(packets.every((packet, i) => i === 0 || ordered(packets[i - 1], packet)), "page: not strictly sorted by survey and tag");
  packets.forEach((packet) => demandWritten(study, round, packet));
  const texts = new Map(study.surveys.filter((survey) => survey.round === round).map(({ survey }) => [survey, new Map()]));
  for (const { survey, tag, report } of packets) texts.get(survey).set(hex(tag), decode(report)[0]);
  return { packets, digest: sha256(concat(...packets.map((packet) => packet.digest))), texts };
}

function demandWritten(study, round, packet) {
  const [survey, slot] = [study.surveys[packet.survey], study.slots[packet.slot]];
  demand(survey?.written && survey.round === round, "page: a packet of another survey than those of its round");
  const placed = slot && same(packet.study, study.id) && packet.round === slot.round && slot.rows.length === 1 && slot.rows[0].survey === packet.survey;
  demand(placed && !packet.digests.length, "page: a packet at another place than its survey's");
  demand(packet.token.length === study.tokenSize && fits(survey, packet.report), "page: a packet of other lengths");
}

// Numbers as bytes of a key to which a letter can be sealed: ML-KEM's below its modulus, and a point of no small order.
const [ELEMENTS, KEM_KEY, KEM_MODULUS, FIELD] = [1152, 1184, 3329, 2n ** 255n - 19n];
const SMALL = new Set([
  0n, 1n, FIELD - 1n, 325606250916557431795983626356110631294008115727848805560023387167927233504n,
  39382357235489614581723060781553021112529911719440698176882885853963445705823n,
]);

export function isSealingKey(key) {
  if (key.length !== KEM_KEY + 32) return false;
  for (let at = 0; at < ELEMENTS; at += 3) {
    const [first, second] = [key[at] | ((key[at + 1] & 15) << 8), (key[at + 1] >> 4) | (key[at + 2] << 4)];
    if (first >= KEM_MODULUS || second >= KEM_MODULUS) return false;
  }
  const point = BigInt(`0x${hex(key.slice(KEM_KEY).reverse())}`) & (2n ** 255n - 1n);
  return !SMALL.has(point % FIELD);
}
