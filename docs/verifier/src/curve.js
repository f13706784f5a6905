// Credentials and tokens: BBS with pseudonyms on BLS12-381 (docs/protocol.md, "Credentials and tokens").
//
// A batch is folded with fresh coefficients of 128 bits: a bad one passes with a chance of 2^-128. A fold that fails is
// halved until the bad ones are found, so a verdict is the same in a batch and alone. Equations of tokens are cofactored.
import { expand_message_xmd } from "@noble/curves/abstract/hash-to-curve.js";
import { pippenger } from "@noble/curves/abstract/curve.js";
import { bls12_381 } from "@noble/curves/bls12-381.js";
import { concat, demand, number, sha256, spelled, utf8 } from "./bytes.js";

const { G1, G2 } = bls12_381;
const Point = G1.Point;
const { Fp } = Point;
const ORDER = Point.Fn.ORDER;
const API = "BBS_BLS12381G1_XMD:SHA-256_SSWU_RO_H2G_HM2S_PSEUDONYM_";
const P1 = Point.fromHex("a8ce256102840821a3e94ea9025e4662b205762f9776b3a766c872b948f1fd225e7c59698588e70d11406d161b4e28c9");
const NEGATED_G2 = G2.Point.BASE.negate();
const i8 = (value) => spelled(value, 8);
const mod = (value) => ((value % ORDER) + ORDER) % ORDER;

const expand = (message, dst) => expand_message_xmd(message, utf8(dst), 48, sha256);
const hashToScalar = (message, dst) => number(expand(message, dst)) % ORDER;
const hashToPoint = (message, dst) => Point.fromAffine(G1.hashToCurve(message, { DST: utf8(dst) }).toAffine());

const POINTS_SIZE = 7 * 96;
export const tokenSize = (count) => POINTS_SIZE + 32 * (count + 4);

function generators(count, api) {
  const seed = `${api}SIG_GENERATOR_SEED_`;
  let state = expand(utf8(`${api}MESSAGE_GENERATOR_SEED`), seed);
  return Array.from({ length: count }, (_, i) => {
    state = expand(concat(state, i8(i + 1)), seed);
    return hashToPoint(state, `${api}SIG_GENERATOR_DST_`);
  });
}

// Decoding

// A point of the curve in its one spelling, not the identity, in the subgroup or not; null for anything else.
function decodePoint(data) {
  const flags = data[0] >> 5;
  if (data.length !== 48 || (flags !== 4 && flags !== 5)) return null;
  const x = number(data) & ((1n << 381n) - 1n);
  if (x >= Fp.ORDER) return null;
  try {
    const y = Fp.sqrt(Fp.add(Fp.mul(Fp.sqr(x), x), 4n));
    const larger = 2n * y > Fp.ORDER;
    return Point.fromAffine({ x, y: larger === (flags === 5) ? y : Fp.neg(y) });
  } catch {
    return null;
  }
}

// The same of a compressed point and its y.
function decodeWide(data) {
  const [flags, x, y] = [data[0] >> 5, number(data.subarray(0, 48)) & ((1n << 381n) - 1n), number(data.subarray(48))];
  if (data.length !== 96 || x >= Fp.ORDER || y >= Fp.ORDER) return null;
  if (flags !== (2n * y > Fp.ORDER ? 5 : 4)) return null;
  return Fp.sqr(y) === Fp.add(Fp.mul(Fp.sqr(x), x), 4n) ? Point.fromAffine({ x, y }) : null;
}

// A multiple that lies in the subgroup, of any point of the curve.
const cleared = (point) => point.clearCofactor();

function decodeScalar(data) {
  const value = number(data);
  return value > 0n && value < ORDER ? value : null;
}

function decodeKey(data) {
  try {
    demand(data.length === 96, "a key has 96 bytes");
    const key = G2.Point.fromBytes(data);
    return key.is0() ? null : key;
  } catch {
    return null;
  }
}

const random = (size) => {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 65536) crypto.getRandomValues(bytes.subarray(at, Math.min(at + 65536, size)));
  return bytes;
};

const coefficients = (count) => {
  const drawn = random(16 * count);
  return Array.from({ length: count }, (_, i) => number(drawn.subarray(16 * i, 16 * i + 16)));
};

const FEW = 256; // points below which 128 sums cost more than a test of each

// True if all points lie in the subgroup. If one does not, each of 128 sums over random subsets misses it with a chance
// of 1/2 at most. One sum with large factors would be no test: a class of order 3 vanishes for a third of them.
function allInSubgroup(points) {
  if (points.length < FEW) return points.every((point) => point.isTorsionFree());
  for (let round = 0; round < 16; round++) {
    const bytes = random(points.length);
    let classes = Array(256).fill(Point.ZERO);
    points.forEach((point, i) => (classes[bytes[i]] = classes[bytes[i]].add(point)));
    while (classes.length > 1) {
      const half = classes.length / 2;
      const [without, having] = [classes.slice(0, half), classes.slice(half)];
      if (!having.reduce((sum, one) => sum.add(one), Point.ZERO).isTorsionFree()) return false;
      classes = without.map((one, i) => one.add(having[i]));
    }
  }
  return true;
}

function multiexp(points, scalars) {
  return points.length ? pippenger(Point, points, scalars.map(mod)) : Point.ZERO;
}

function paired(left, key, right) {
  const pairs = [[left, key], [right, NEGATED_G2]].filter(([point]) => !point.is0());
  if (!pairs.length) return true;
  const product = bls12_381.pairingBatch(pairs.map(([g1, g2]) => ({ g1, g2 })));
  return bls12_381.fields.Fp12.eql(product, bls12_381.fields.Fp12.ONE);
}

// The places at which a check of a part fails, by halving.
function failures(items, holds) {
  if (!items.length || holds(items)) return [];
  if (items.length === 1) return [items[0].place];
  const half = items.length >> 1;
  return [...failures(items.slice(0, half), holds), ...failures(items.slice(half), holds)];
}

// The subgroup, then the equations. `points` of an item are those that have to lie in the subgroup.
function judged(items, count, holds) {
  const inside = (some) => allInSubgroup(some.flatMap((item) => item.points));
  const outside = new Set(failures(items, inside));
  const good = Array(count).fill(false);
  const sound = items.filter((item) => !outside.has(item.place));
  sound.forEach((item) => (good[item.place] = true));
  failures(sound, holds).forEach((place) => (good[place] = false));
  return good;
}

export class Issuer {
  // Raises a Fault for a key that is not canonical, outside its subgroup or the identity.
  constructor(key, header, count) {
    this.key = decodeKey(key);
    demand(this.key, "the issuer's key is no point of its group");
    this.count = count;
    const [first, ...blind] = [...generators(1, API), ...generators(count + 1, `BLIND_${API}`)];
    this.generators = blind;
    const shown = concat(key, i8(blind.length), ...[first, ...blind].map((point) => point.toBytes(true)), utf8(API));
    const signed = concat(header, i8(count));
    this.domain = hashToScalar(concat(shown, i8(signed.length), signed), `${API}H2S_`);
    this.fixed = P1.add(first.multiplyUnsafe(this.domain));
    this.contexts = new Map();
  }

  entropy(seed, member) {
    return hashToScalar(concat(i8(seed.length), seed, member), "anonml/1/nym-entropy");
  }

  // For each { commitment, signature, entropy } whether its holder can use it.
  credentials(items) {
    const last = this.generators.at(-1);
    const read = items.map(({ commitment, signature, entropy }, place) => {
      const [a, c] = [decodePoint(signature.subarray(0, 48)), decodePoint(commitment)];
      const e = signature.length === 80 ? decodeScalar(signature.subarray(48)) : null;
      return a && c && e !== null && entropy ? { place, points: [a, c], a, c, e, entropy } : null;
    });
    return judged(read.filter(Boolean), items.length, (some) => {
      const k = coefficients(some.length);
      const sum = (of) => some.reduce((all, one, i) => all + of(one, k[i]), 0n);
      const bases = multiexp(
        [...some.map((one) => one.c), ...some.map((one) => one.a), this.fixed, last],
        [...k, ...some.map((one, i) => -k[i] * one.e), sum((_, own) => own), sum((one, own) => own * one.entropy)],
      );
      return paired(multiexp(some.map((one) => one.a), k), this.key, bases);
    });
  }

  #context(context) {
    const name = String(context);
    if (!this.contexts.has(name)) {
      this.contexts.set(name, { point: hashToPoint(context, API), z: hashToScalar(context, `${API}VECT_NYM_SECRETS`) });
    }
    return this.contexts.get(name);
  }

  // For each { token, context, presentation } whether it holds.
  tokens(items) {
    const read = items.map((item, place) => this.#read(item, place)).filter(Boolean);
    return judged(read, items.length, (some) => this.#hold(some));
  }

  #read({ token, context, presentation }, place) {
    if (token.length !== tokenSize(this.count)) return null;
    const scalars = [];
    for (let at = POINTS_SIZE; at < token.length; at += 32) scalars.push(decodeScalar(token.subarray(at, at + 32)));
    if (scalars.includes(null)) return null;
    const spelt = Array.from({ length: 7 }, (_, i) => token.subarray(96 * i, 96 * i + 96));
    const all = spelt.map(decodeWide);
    // Nothing of a signature is in an Abar of small order: without this test anybody makes tokens.
    if (all.includes(null) || cleared(all[1]).is0()) return null;
    const [nym, aBar, bBar, d, t1, t2, ut] = spelt.map((one) => one.subarray(0, 48));
    const shown = concat(i8(0), aBar, bBar, d, t1, t2, nym, ut, spelled(this.domain, 32), i8(presentation.length), presentation, i8(context.length), context);
    const challenge = hashToScalar(shown, `${API}H2S_`);
    if (!challenge) return null;
    const [e, r1, r3, ...messages] = scalars;
    return { place, points: all.slice(0, 1), shown: all, challenge, e, r1, r3, messages, context };
  }

  // T1 = Bbar c + Abar e + D r1, T2 = Bv c + D r3 + sum of H m, Ut = OP poly(m) - pseudonym c, e(Abar, W) = e(Bbar, BP2),
  // each times the cofactor.
  #hold(some) {
    const [points, scalars, own] = [[], [], new Map()];
    const fixed = Array(1 + this.generators.length).fill(0n);
    const k = coefficients(4 * some.length);
    const [left, right, last] = [[], [], []];
    some.forEach(({ shown: [nym, aBar, bBar, d, t1, t2, ut], challenge: c, e, r1, r3, messages, context }, i) => {
      const [k1, k2, k3, k4] = k.slice(4 * i, 4 * i + 4);
      points.push(t1, bBar, aBar, d, t2, ut, nym);
      scalars.push(k1, -k1 * c, -k1 * e, -k1 * r1 - k2 * r3, k2, k3, k3 * c);
      fixed[0] = mod(fixed[0] - k2 * c);
      messages.forEach((message, j) => (fixed[j + 1] = mod(fixed[j + 1] - k2 * message)));
      const at = this.#context(context);
      const poly = messages.slice(-this.count).reduceRight((sum, one) => (sum * at.z + one) % ORDER, 0n);
      own.set(at, mod((own.get(at) ?? 0n) - k3 * poly));
      [left, right, last].forEach((list, j) => list.push([aBar, bBar, k4][j]));
    });
    const bases = [this.fixed, ...this.generators, ...[...own.keys()].map((at) => at.point)];
    const all = multiexp([...points, ...bases], [...scalars, ...fixed, ...own.values()]);
    return cleared(all).is0() && paired(cleared(multiexp(left, last)), this.key, cleared(multiexp(right, last)));
  }
}

// True for a point of the curve in its one spelling, in the subgroup and not the identity.
export const isPoint = (data) => decodePoint(data)?.isTorsionFree() ?? false;
