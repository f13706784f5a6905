// Pages of what members wrote: each packet at its place (docs/protocol.md, "Written surveys and letters").
import { BYTES, INT, LIST, compare, demand, fields, isBytes, same } from "./bytes.js";
import { fits, parsePacket } from "./packets.js";

// The packets of a round's page, each with its plaintext.
export function readPage(study, round, body) {
  const [version, named, at, plaintexts] = fields(body, [INT, BYTES, INT, LIST], "page");
  demand(version === 1n && same(named, study.id) && at === BigInt(round), "page: for another study, round or version");
  demand(plaintexts.every(isBytes), "page: packets are byte strings");
  const packets = plaintexts.map((plaintext) => ({ ...parsePacket(plaintext), plaintext }));
  const ordered = (a, b) => a.survey < b.survey || (a.survey === b.survey && compare(a.tag, b.tag) < 0);
  demand(packets.every((packet, i) => i === 0 || ordered(packets[i - 1], packet)), "page: not strictly sorted by survey and tag");
  packets.forEach((packet) => demandWritten(study, round, packet));
  return packets;
}

function demandWritten(study, round, packet) {
  const [survey, slot] = [study.surveys[packet.survey], study.slots[packet.slot]];
  demand(survey?.written && survey.round === round, "page: a packet of another survey than those of its round");
  const placed = slot && same(packet.study, study.id) && packet.round === slot.round && slot.rows.length === 1 && slot.rows[0].survey === packet.survey;
  demand(placed && !packet.digests.length, "page: a packet at another place than its survey's");
  demand(packet.token.length === study.tokenSize && fits(survey, packet.report), "page: a packet of other lengths");
}
