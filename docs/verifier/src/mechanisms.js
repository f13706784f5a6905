// Mechanisms from their integers over 2^64: loss, reports, counts (docs/protocol.md, "Mechanisms and reports").
import { demand, number } from "./bytes.js";

export const SCALE = 1n << 64n;
const NANO = 10n ** 9n;
const DIGITS = 256n; // binary digits of a logarithm: far more than 1e-60

// ln(a / b) for a >= b > 0, in units of 2^-256, rounded down by at most some 2^-240.
function logarithm(a, b) {
  const one = 1n << DIGITS;
  let [x, doublings] = [(a << DIGITS) / b, 0n];
  while (x >= one << 1n) [x, doublings] = [x >> 1n, doublings + 1n];
  return atanhTwice(x - one, x + one) + doublings * atanhTwice(one, 3n * one);
}

// 2 atanh(n / d) by its series.
function atanhTwice(n, d) {
  const ratio = (n << DIGITS) / d;
  const square = (ratio * ratio) >> DIGITS;
  let [sum, power] = [0n, ratio];
  for (let odd = 1n; power; odd += 2n) {
    sum += power / odd;
    power = (power * square) >> DIGITS;
  }
  return 2n * sum;
}

// ln of the worst ratio in 1e-9, rounded up; 1e-60 more covers what rounding took away.
function loss(a, b) {
  if (a === b) return 0n;
  const margin = (1n << DIGITS) / 10n ** 60n;
  const scaled = (logarithm(a, b) + margin) * NANO;
  return (scaled + (1n << DIGITS) - 1n) >> DIGITS;
}

function choose(n, k) {
  let result = 1n;
  for (let i = 1n; i <= k; i++) result = (result * (BigInt(n) - BigInt(k) + i)) / i;
  return result;
}

const bitLength = (value) => BigInt(value.toString(2).length);

const NAMED = {
  krr: {
    fits: ({ m, p, q }) => p + BigInt(m - 1) * q === SCALE,
    worst: ({ p, q }) => [[p, q]],
  },
  rappor: { fits: ({ p, q }) => p + q === SCALE, worst: unaryWorst },
  pq: { fits: () => true, worst: unaryWorst },
  subset: {
    fits: (one) => {
      const all = one.p + BigInt(one.m - 1) * one.q;
      one.w = Number(all / SCALE);
      return all % SCALE === 0n && one.w >= 1 && one.w < one.m;
    },
    worst: ({ m, p, w }) => {
      const [inside, outside] = [choose(m - 1, w - 1), choose(m - 1, w)];
      const larger = inside > outside ? inside : outside;
      const all = 1n << (8n * ((bitLength(larger) + 64n + 7n) / 8n));
      const [inFew, inMost] = [all / inside, (all + inside - 1n) / inside];
      const [outFew, outMost] = [all / outside, (all + outside - 1n) / outside];
      return [[p * inMost, (SCALE - p) * outFew], [(SCALE - p) * outMost, p * inFew], [inMost, inFew], [outMost, outFew]];
    },
  },
};

function unaryWorst({ p, q }) {
  return [[p * (SCALE - q), (SCALE - p) * q]];
}

export function mechanism(name, m, p, q) {
  const made = { name, m: Number(m), p, q };
  demand(Object.hasOwn(NAMED, name), "an unknown mechanism");
  demand(m >= 2 && m <= 4096, "a mechanism has 2 to 4,096 categories");
  demand(0n < q && q < p && p < SCALE, "probabilities satisfy 0 < q < p < 2^64");
  demand(NAMED[name].fits(made), `p and q do not fit ${name}`);
  made.epsilon = NAMED[name].worst(made).map(([a, b]) => (a > b ? loss(a, b) : 0n)).reduce((x, y) => (x > y ? x : y));
  demand(made.epsilon > 0n && made.epsilon <= 20n * NANO, "a loss lies above 0 and is at most 20");
  made.size = name === "krr" ? 2 : Math.ceil(made.m / 8);
  return made;
}

// The categories that a report supports, or a Fault.
export function supported(made, report) {
  demand(report.length === made.size, "a report of another length");
  if (made.name === "krr") {
    const category = Number(number(report));
    demand(category < made.m, "a report of a category that is not there");
    return [category];
  }
  const set = [];
  for (let i = 0; i < 8 * report.length; i++) if ((report[i >> 3] >> (7 - (i & 7))) & 1) set.push(i);
  demand(set.every((category) => category < made.m), "bits behind the last category");
  demand(made.name !== "subset" || set.length === made.w, "a set of another size");
  return set;
}

// The chances that a report supports the true category and a given other, and two given others.
export function joint({ name, m, p, q, w }) {
  if (name !== "subset") return [ratio(p * q, SCALE * SCALE), ratio(q * q, SCALE * SCALE)];
  const [M, W] = [BigInt(m), BigInt(w)];
  const pairs = m === 2 ? 0 : ratio((W - 1n) * (p * (W - 2n) + (SCALE - p) * W), SCALE * (M - 1n) * (M - 2n));
  return [ratio(p * (W - 1n), SCALE * (M - 1n)), pairs];
}

// (count - q n) / (p - q), with one division of integers.
export function unbiased(made, counts, n) {
  return counts.map((count) => ratio(BigInt(count) * SCALE - made.q * BigInt(n), made.p - made.q));
}

// The double that is nearest to a / b, ties to even.
export function ratio(a, b) {
  if (a < 0n) return -ratio(-a, b);
  if (a === 0n) return 0;
  let shift = Number(bitLength(b)) - Number(bitLength(a)) + 55;
  const [over, under] = shift > 0 ? [a << BigInt(shift), b] : [a, b << BigInt(-shift)];
  let digits = over / under;
  if (over % under) digits |= 1n; // a sticky bit: Number() rounds to nearest, ties to even
  return Number(digits) * 2 ** -shift;
}

// The nearest shares that are at least 0 and sum to 1.
export function nearestShares(shares) {
  let [running, shift] = [0, 0];
  [...shares].sort((a, b) => b - a).forEach((share, i) => {
    running += share;
    if (share - (running - 1) / (i + 1) > 0) shift = (running - 1) / (i + 1);
  });
  return shares.map((share) => Math.max(share - shift, 0));
}
