// Secrets in shares (Shamir 1979), and their recovery where some shares are lies (docs/protocol.md, "Sums under masks").
import { number, spelled } from "./bytes.js";

const PRIME = 2n ** 255n - 19n;
const SECRET = 31;
const TRIES = 400;
const mod = (value) => ((value % PRIME) + PRIME) % PRIME;

function power(base, exponent) {
  let found = 1n;
  for (let [left, own] = [exponent, mod(base)]; left; left >>= 1n, own = (own * own) % PRIME) if (left & 1n) found = (found * own) % PRIME;
  return found;
}

const inverse = (value) => power(value, PRIME - 2n);

// The secret of enough shares, by their places from 1 on, or null. `fits`: true of the one that its owner said.
export function recovered(shares, needed, fits) {
  const points = [...shares].map(([place, share]) => [BigInt(place), mod(number(share))]);
  for (const value of decodings(points, needed)) {
    if (value >= 1n << BigInt(8 * SECRET)) continue;
    const secret = spelled(value, SECRET);
    if (fits(secret)) return secret;
  }
  return null;
}

// The values at 0 that these points can mean, the likeliest first.
function* decodings(points, needed) {
  const beyond = points.length - needed;
  if (beyond < 0) return;
  yield atZero(points.slice(0, needed));
  for (let many = 0; many <= beyond && choices(points.length, many) <= TRIES; many++) {
    if (many && (beyond - many) % 2) continue; // one fewer finds as many lies
    for (const without of combinations(points.length, many)) yield decoded(points.filter((_, i) => !without.includes(i)), needed);
  }
}

function choices(all, many) {
  let found = 1;
  for (let i = 0; i < many; i++) found = (found * (all - i)) / (i + 1);
  return Math.round(found);
}

function* combinations(all, many, from = 0) {
  if (!many) return yield [];
  for (let first = from; first <= all - many; first++) for (const rest of combinations(all, many - 1, first + 1)) yield [first, ...rest];
}

// The value at 0 of the polynomial through these points, by Lagrange with one inversion.
function atZero(points) {
  let [total, below] = [0n, 1n];
  for (const [x, y] of points) {
    let [share, others] = [1n, 1n];
    for (const [other] of points) {
      if (other === x) continue;
      share = mod(share * (other - x));
      others = mod(others * other);
    }
    total = mod(total * share + y * others * below);
    below = mod(below * share);
  }
  return mod(total * inverse(below));
}

// The value at 0 of the polynomial with `needed` coefficients that most points lie on, by Gao's algorithm of 2003. Where
// there is none, any number. Coefficients stand with the constant first.
function decoded(points, needed) {
  let [above, below] = [[1n], []];
  for (const [place, value] of points) {
    below = plus(below, above, (value - valueAt(place, below)) * inverse(valueAt(place, above)));
    above = plus([0n, ...above], above, -place);
  }
  let [before, locator] = [[], [1n]];
  while (2 * (below.length - 1) >= points.length + needed) {
    while (above.length >= below.length) {
      const step = Array(above.length - below.length).fill(0n);
      const factor = -above.at(-1) * inverse(below.at(-1));
      [above, before] = [plus(above, [...step, ...below], factor), plus(before, [...step, ...locator], factor)];
    }
    [above, below, before, locator] = [below, above, locator, before];
  }
  return below.length && locator[0] ? mod(below[0] * inverse(locator[0])) : 0n;
}

function plus(left, right, factor) {
  const total = Array.from({ length: Math.max(left.length, right.length) }, (_, i) => mod((left[i] ?? 0n) + (right[i] ?? 0n) * factor));
  while (total.length && !total.at(-1)) total.pop();
  return total;
}

const valueAt = (place, polynomial) => polynomial.reduceRight((total, coefficient) => mod(total * place + coefficient), 0n);
