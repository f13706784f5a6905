// Sums under masks, which members open together (docs/protocol.md, "Sums under masks").
import { x25519 } from "@noble/curves/ed25519.js";
import { INT, compare, concat, demand, encode, fields, same, sha256, unhex, utf8 } from "./bytes.js";
import { shapeOf } from "./designs.js";
import { linearOf } from "./models.js";
import { recovered } from "./sharing.js";
import { numbersIn, shaken } from "./streams.js";
import { linearResult } from "./summed.js";

const [KEYS, SHARES, VECTOR, CAME, OPENING] = [0, 1, 2, 3, 4];
const [KEM, WIDTH, SHARE, NEAR, GAP] = [1216, 8, 32, 80, 15];
const OWN = utf8("anonml/1/mask-own");
const mostOf = (many) => Math.floor((2 * many) / 3) + 1;

export const masks = {
  seats: [],
  ends(study, round, { pages }) {
    const { least } = partOf(study);
    if (round === KEYS) return pages.get(KEYS).texts.get(KEYS).size < least;
    const board = new Masked(study, pages, least);
    if (round === SHARES) return board.sharers.size < least;
    if (round === VECTOR) return board.came.size < least || board.torn();
    return round === CAME ? !board.agreed() : board.opened() === null;
  },
  result(study, { pages }, given) {
    const { least, noise: [up, down] } = partOf(study);
    const board = new Masked(study, pages, least);
    const values = board.opened();
    demand(values, "masks: too few opened what came, or their shares do not fit");
    const many = board.came.size;
    return linearOf(study, linearResult(study, study.surveys[VECTOR], { values, summed: many, noise: [up * BigInt(many), down] }, given));
  },
};

function partOf(study) {
  const [least, honest, up, down] = fields(study.part ?? new Uint8Array(0), [INT, INT, INT, INT], "masks");
  demand(least >= honest && honest >= 1n && up > 0n && down > 0n, "masks: expected honest members, no fewer in all, and noise");
  return { least: Number(least), noise: [up, down] };
}

// What the pages of a study say. Tags are in hexadecimal.
class Masked {
  constructor(study, pages, least) {
    const survey = study.surveys[VECTOR];
    this.length = shapeOf(survey).length;
    demand(survey.size === WIDTH * this.length, "manifest: its surveys are not those of masks");
    Object.assign(this, { study, pages, least, near: circles(pages.get(KEYS)) });
    this.members = new Map([...this.texts(KEYS)].map(([tag, text]) => [tag, text.subarray(KEM)]));
    this.sharers = this.known(SHARES, (tag) => this.members.has(tag));
    const hidden = (tag) => this.sharers.has(tag) && this.near.get(tag).filter((other) => this.sharers.has(other)).length >= this.needed(tag);
    this.came = pages.has(VECTOR) ? this.known(VECTOR, (tag) => this.sharers.size >= least && hidden(tag)) : new Map();
  }

  texts(survey) {
    demand(this.pages.has(survey), "masks: a page is missing");
    return this.pages.get(survey).texts.get(survey);
  }

  known(survey, holds) {
    return new Map([...this.texts(survey)].filter(([tag]) => holds(tag)));
  }

  // So many neighbours tell a secret.
  needed(tag) {
    return mostOf(this.near.get(tag).length);
  }

  agreed() {
    const seen = sha256(concat(...[KEYS, SHARES, VECTOR].map((round) => this.pages.get(round).digest)));
    const said = [...this.known(CAME, (tag) => this.sharers.has(tag)).values()].filter((text) => same(text, seen)).length;
    return said >= Math.max(this.least, mostOf(this.sharers.size)) && !this.torn();
  }

  // True where too many of some in a row on the ring did not come.
  torn() {
    const missing = [...this.near.keys()].map((tag) => !this.came.has(tag));
    if (missing.length - 1 <= NEAR) return false;
    return missing.some((_, at) => missing.concat(missing).slice(at, at + NEAR / 2).filter(Boolean).length > GAP);
  }

  // The sum of all vectors that came, or null.
  opened() {
    if (!this.agreed()) return null;
    const total = new BigUint64Array(this.length); // which counts modulo 2^64
    const add = (entries, sign) => entries.forEach((entry, i) => (total[i] += sign * entry));
    for (const [tag, text] of this.came) {
      const own = recovered(this.points(tag), this.needed(tag), (secret) => same(sha256(encode([OWN, utf8("commitment"), secret])), this.sharers.get(tag)));
      if (own === null) return null;
      add(numbersIn(text, WIDTH), 1n);
      add(this.mask([OWN, this.study.id, own]), -1n);
    }
    for (const tag of this.sharers.keys()) {
      if (this.came.has(tag)) continue;
      const left = this.near.get(tag).filter((other) => this.came.has(other));
      const key = recovered(this.points(tag), this.needed(tag), (secret) => same(x25519.getPublicKey(keyOf(secret)), this.members.get(tag)));
      if (key === null && left.length) return null;
      // One that dropped out would have added the opposite of what is left of it.
      for (const other of left) add(this.pairMask(keyOf(key), tag, other), tag < other ? 1n : -1n);
    }
    return Array.from(total, (entry) => BigInt.asIntN(64, entry));
  }

  mask(grounds) {
    return numbersIn(shaken(grounds, WIDTH * this.length), WIDTH);
  }

  pairMask(key, tag, other) {
    const shared = agreedOn(key, this.members.get(other));
    return shared ? this.mask([utf8("anonml/1/mask-pair"), this.study.id, shared, ...[tag, other].sort().map(unhex)]) : [];
  }

  // The shares of a secret that neighbours opened, by the place of each in the member's own order.
  points(tag) {
    const found = new Map();
    this.near.get(tag).forEach((other, i) => {
      const at = SHARE * this.near.get(other).indexOf(tag);
      const part = this.texts(OPENING).get(other)?.subarray(at, at + SHARE) ?? new Uint8Array(0);
      if (part.some(Boolean)) found.set(i + 1, part);
    });
    return found;
  }
}

const keyOf = (secret) => shaken([utf8("anonml/1/mask-key"), secret], 32);

// The secret of two members, or null for a key of small order.
function agreedOn(key, other) {
  try {
    return x25519.getSharedSecret(key, other);
  } catch {
    return null;
  }
}

// The neighbours of each member, in the order of the ring, which is that of the map too.
function circles(page) {
  const place = (tag) => sha256(concat(utf8("anonml/1/mask-order"), page.digest, unhex(tag)));
  const placed = [...page.texts.get(KEYS).keys()].map((tag) => ({ tag, place: place(tag) }));
  const ring = placed.sort((a, b) => compare(a.place, b.place)).map(({ tag }) => tag);
  if (ring.length - 1 <= NEAR) return new Map(ring.map((tag) => [tag, ring.filter((other) => other !== tag)]));
  const half = NEAR / 2;
  const around = [...ring.slice(-half), ...ring, ...ring.slice(0, half)];
  return new Map(ring.map((tag, at) => [tag, [...around.slice(at, at + half), ...around.slice(at + half + 1, at + 2 * half + 1)]]));
}
