// The additive model of moments, and how often noise alone would count as much (docs/protocol.md, "The additive model").
import { applied, dot, eigen, picked, range, sum, times, transposed, whitening, zeros } from "./algebra.js";
import { normals } from "./draws.js";
import { doublyCentred, measuredOf, pairsOf } from "./moments.js";

export const TAUS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32];
export const SHIFTS = [0.01, 0.02, 0.04, 0.08, 0.12];
export const CELL_TAUS = TAUS.slice(1);
export const [LEVEL, ABSTAIN_FROM] = [0.015, 0.5];
const [SMOOTH, LARGEST_R2, ROUNDS, DRAWS, CERTAIN, DECLARED] = [2, 0.8, 2, 8000, 12, 0.75];
const ASSUMED_RELATION = 0.2;
const UNCERTAIN_RELATION = 0.1;
const [LEAN, LARGEST_LEAN, OTHERS] = [0.02, 0.4, 0.16];
const spaced = (count) => range(count).map((i) => (count > 1 ? -1 + (2 * i) / (count - 1) : -1));

// The covariance of the categories' indicators, and the part of each pair's measured block that is kept.
export function indicatorCovariance({ coordinates, shares, second, secondVariance }) {
  const { features, size, of } = coordinates;
  const covariance = zeros(size, size);
  for (const { place } of features) for (const i of place) for (const j of place) covariance[i][j] = (i === j ? shares[i] : 0) - shares[i] * shares[j];
  const kept = pairsOf(features.map((one) => one.name)).map((names) => {
    const [rows, columns] = names.map((name) => of.get(name).place);
    const noise = picked(secondVariance, rows, columns);
    if (!noise.every((row) => row.every(Number.isFinite))) return { names, part: 0 };
    const block = doublyCentred(picked(second, rows, columns).map((row, i) => row.map((one, j) => one - shares[rows[i]] * shares[columns[j]])));
    const degrees = (1 - 1 / rows.length) * (1 - 1 / columns.length);
    const squares = sum(block.map((row) => dot(row, row)));
    const part = squares > 0 ? Math.max(0, 1 - (degrees * sum(noise.map(sum))) / squares) : 0;
    rows.forEach((r, i) => columns.forEach((c, j) => (covariance[r][c] = covariance[c][r] = part * block[i][j])));
    return { names, part };
  });
  if (!kept.some(({ part }) => part)) return { covariance, kept };
  const { values, vectors } = eigen(covariance);
  const positive = vectors.map((row, k) => row.map((one) => one * Math.max(values[k], 0)));
  return { covariance: times(transposed(positive), vectors), kept };
}

export function priorOf({ features, size }) {
  const kernel = zeros(size, size);
  for (const { place, card, numeric, own } of features) {
    const ordered = card - (own ? 1 : 0);
    const at = numeric && ordered > 2 ? spaced(ordered) : [];
    place.forEach((r, i) => place.forEach((c, j) => {
      const smooth = i < at.length && j < at.length;
      kernel[r][c] = smooth ? 2 * Math.exp(-Math.abs(at[i] - at[j]) / 2 / SMOOTH) + at[i] * at[j] : Number(i === j);
    }));
  }
  return kernel;
}

export function declared({ features, size }, shares) {
  const found = new Float64Array(size);
  for (const { place, numeric, own, expects } of features) {
    const told = place.slice(0, place.length - (own ? 1 : 0));
    if (!expects.length || !told.length) continue;
    const at = numeric ? spaced(told.length).map((one) => expects[0] * one) : expects;
    const common = told.map((i) => shares[i]);
    const middle = dot(common, at) / sum(common);
    told.forEach((i, k) => (found[i] = at[k] - middle));
  }
  return found;
}

function centred({ coordinates, shares }, effects) {
  const found = Float64Array.from(effects);
  for (const { place } of coordinates.features) {
    const mean = sum(place.map((at) => shares[at] * effects[at]));
    for (const at of place) found[at] -= mean;
  }
  return found;
}

// The measurements: values = rows x covariance x effects + noise.
export function measurements(moments) {
  const { coordinates, variance, contrast, bits } = moments;
  const measured = measuredOf(variance);
  const rows = [...measured.map((at) => Float64Array.from({ length: coordinates.size }, (_, i) => Number(i === at))), ...bits.map((bit) => bit.signs)];
  const values = [...measured.map((at) => contrast[at]), ...bits.map((bit) => bit.value)];
  return { moments, rows, values, ...indicatorCovariance(moments), kernel: priorOf(coordinates), direction: declared(coordinates, moments.shares) };
}

// In coordinates where the noise is white and prior effects are unrelated.
export function whitened({ moments, rows, values, covariance, kernel, direction }, effects) {
  let noise = moments.noise(new Float64Array(direction.length));
  if (effects) {
    const doubt = moments.secondVariance.map((row) => row.reduce((all, one, i) => all + (Number.isFinite(one) ? (one / 2) * effects[i] ** 2 : 0), 0));
    noise = moments.noise(centred(moments, effects));
    rows.forEach((row, i) => (noise[i][i] += row.reduce((all, one, k) => all + one * one * doubt[k], 0)));
  }
  if (!values.length) return { z: [], strengths: [], gain: zeros(direction.length, 0), expected: [], directed: false };
  return seenThrough(noise, times(rows, covariance), kernel, values, direction);
}

// values = design x effects + noise of this covariance; `kernel`: the prior covariance of the effects at tau = 1.
export function seenThrough(noise, design, kernel, values, direction) {
  const white = whitening(noise);
  const clear = times(white, design);
  const known = times(kernel, transposed(clear));
  const { values: strengths, vectors } = eigen(times(clear, known));
  const along = applied(clear, direction);
  // Of the two opposite vectors that which declared effects move upwards.
  const turned = vectors.map((row) => (dot(row, along) < 0 ? row.map((one) => -one) : row));
  const expected = turned.map((row) => dot(row, along));
  const z = applied(turned, applied(white, values));
  return { z, strengths: strengths.map((one) => Math.max(one, 0)), gain: times(known, transposed(turned)), expected, directed: expected.some((one) => one !== 0) };
}

const around = (z, strengths, tau) => sum(strengths.map((one, i) => z[i] ** 2 * ((tau ** 2 * one) / (1 + tau ** 2 * one)) - Math.log1p(tau ** 2 * one))) / 2;
const sharply = ({ expected, strengths }, tau) => expected.map((one, i) => one / (1 + tau ** 2 * strengths[i]));

// The prior chance that what staff declared is the wrong way round.
function reversedChance(seen) {
  const clear = Math.sqrt(dot(seen.expected, sharply(seen, OTHERS)));
  return 1 / (1 + Math.exp(Math.min(LEAN * clear, LARGEST_LEAN)));
}

const logMean = (numbers) => {
  const top = Math.max(...numbers);
  return top + Math.log(sum(numbers.map((one) => Math.exp(one - top))) / numbers.length);
};

// The log of the average Bayes factor, as a function of z.
function averageOf(seen, taus, shifts) {
  const { strengths, directed } = seen;
  const parts = taus.map((tau) => {
    const sharp = sharply(seen, tau);
    const kept = strengths.map((one) => (tau ** 2 * one) / (1 + tau ** 2 * one));
    return { sharp, kept, bend: dot(seen.expected, sharp), size: sum(strengths.map((one) => Math.log1p(tau ** 2 * one))) };
  });
  const turn = directed ? reversedChance(seen) : 0;
  const ways = shifts.flatMap((shift) => [[shift, Math.log(1 - turn)], [-shift, Math.log(turn)]]);
  return (z) => {
    const squares = Float64Array.from(z, (one) => one * one);
    const factors = parts.map(({ kept, size }) => (dot(kept, squares) - size) / 2);
    const found = logMean(factors);
    if (!directed || !shifts.length) return found;
    const along = logMean(parts.map(({ sharp, bend }, k) => {
      const line = dot(sharp, z);
      return factors[k] + Math.log(2) + logMean(ways.map(([way, share]) => share + way * line - (way ** 2 / 2) * bend));
    }));
    const both = [found + Math.log(1 - DECLARED), along + Math.log(DECLARED)];
    return Math.max(...both) + Math.log1p(Math.exp(-Math.abs(both[0] - both[1])));
  };
}

export function chanceOf(seen, taus, shifts = []) {
  const { z, strengths, directed } = seen;
  if (!strengths.some((one) => one > 0) && !directed) return 1;
  const average = averageOf(seen, taus, shifts);
  const found = average(z);
  if (found > CERTAIN) return Math.exp(-found);
  const source = normals(z.length);
  const drawn = new Float64Array(z.length);
  let atLeast = 1;
  for (let draw = 0; draw < DRAWS; draw++) {
    for (let i = 0; i < drawn.length; i++) drawn[i] = source.next().value;
    if (average(drawn) >= found) atLeast += 1;
  }
  return atLeast / (1 + DRAWS);
}

// Posterior weights and mean effects over all priors.
function averaged(asked, seen, certain) {
  const { z, strengths, expected, directed, gain } = seen;
  const none = 0.5 / TAUS.length;
  const priors = [[0, 0, 0.5], ...TAUS.map((tau) => [0, tau, directed ? none * (1 - DECLARED) : none])];
  const turn = directed ? reversedChance(seen) : 0;
  for (const [way, share] of directed ? [[1, 1 - turn], [-1, turn]] : []) {
    for (const shift of SHIFTS) for (const tau of TAUS) priors.push([way * shift, tau, (none * share * DECLARED) / SHIFTS.length]);
  }
  const scores = priors.map(([shift, tau]) => {
    const sharp = sharply(seen, tau);
    return around(z, strengths, tau) + shift * dot(sharp, z) - (shift ** 2 / 2) * dot(sharp, expected);
  });
  const top = Math.max(...scores);
  let weights = scores.map((score, i) => Math.exp(score - top) * priors[i][2]);
  if (certain) weights[0] = 0;
  weights = weights.map((one) => one / sum(weights));
  if (directed) weights = [weights[0], ...sized(scores.slice(1), priors.slice(1)).map((one) => one * sum(weights.slice(1)))];
  const kept = priors.map(([, tau]) => strengths.map((one) => tau ** 2 / (1 + tau ** 2 * one)));
  const means = priors.map(([shift], p) => {
    const own = applied(gain, z.map((one, i) => kept[p][i] * (one - shift * expected[i])));
    return own.map((one, i) => one + shift * asked.direction[i]);
  });
  return { weights, priors, kept, means, effects: range(asked.direction.length).map((i) => sum(weights.map((one, p) => one * means[p][i]))), gain };
}

// The sizes tau have the weights that effects around 0 give them; within each, the shifts their own.
function sized(scores, priors) {
  const wide = TAUS.length;
  const column = (k) => scores.map((_, i) => i).filter((i) => i % wide === k);
  const tops = range(wide).map((k) => Math.max(...column(k).map((i) => scores[i])));
  const within = scores.map((score, i) => Math.exp(score - tops[i % wide]) * priors[i][2]);
  const totals = range(wide).map((k) => sum(column(k).map((i) => within[i])));
  const sizes = scores.slice(0, wide).map((score) => Math.exp(score - Math.max(...scores.slice(0, wide))));
  return within.map((one, i) => (one / totals[i % wide]) * (sizes[i % wide] / sum(sizes)));
}

function spreadOf({ kernel }, { weights, priors, kept, means, effects, gain }) {
  const within = sum(weights.map((one, p) => one * priors[p][1] ** 2));
  const told = range(kept[0].length).map((i) => sum(weights.map((one, p) => one * kept[p][i] * priors[p][1] ** 2)));
  const apart = means.map((mean) => mean.map((one, i) => one - effects[i]));
  return kernel.map((row, i) => row.map((one, j) => {
    let found = within * one;
    for (let k = 0; k < told.length; k++) found -= gain[i][k] * told[k] * gain[j][k];
    for (let p = 0; p < weights.length; p++) found += weights[p] * apart[p][i] * apart[p][j];
    return found;
  }));
}

// Log-odds of each category, their errors, and the chance that noise alone counts as much.
export function fit(moments) {
  const asked = measurements(moments);
  const first = whitened(asked);
  const chance = chanceOf(first, TAUS, SHIFTS);
  let found = averaged(asked, first, false);
  for (let round = 0; round < ROUNDS; round++) found = averaged(asked, whitened(asked, found.effects), chance <= LEVEL);
  return { ...asLogOdds(asked, found.effects, spreadOf(asked, found)), chance };
}

function asLogOdds({ moments, covariance, kept }, effects, spread) {
  const { coordinates, rate, shares } = moments;
  const plain = centred(moments, effects);
  const moved = applied(covariance, plain);
  const claimed = dot(plain, moved);
  const variance = claimed + assumed(moments, covariance, kept, plain);
  const correction = variance > 0 ? claimed / variance : 1;
  const spent = rate * (1 - rate);
  const r2 = Math.min((correction * claimed) / spent, LARGEST_R2);
  const gain = correction / (spent * (1 - r2));
  const lean = (1 - 2 * rate) / 2 / spent / coordinates.features.length;
  const logOdds = plain.map((one) => gain * one - (lean * r2) / (1 - r2));
  const slope = zeros(plain.length, plain.length);
  for (const { place } of coordinates.features) for (const i of place) for (const j of place) slope[i][j] = gain * ((i === j) - shares[j]);
  if (r2 < LARGEST_R2) {
    plain.forEach((one, i) => {
      const byR2 = (gain * one) / (1 - r2) - lean / (1 - r2) ** 2;
      moved.forEach((other, j) => (slope[i][j] += byR2 * ((2 * correction) / spent) * other));
    });
  }
  const errors = slope.map((row) => Math.sqrt(Math.max(dot(row, applied(spread, row)), 0)));
  return { logOdds, errors };
}

// The variance that relations between features are assumed to add.
function assumed({ coordinates, variance, secondVariance }, covariance, kept, effects) {
  const size = new Map(coordinates.features.map(({ name, place }) => {
    const own = Float64Array.from(place, (at) => effects[at]);
    return [name, Math.sqrt(Math.max(dot(own, applied(picked(covariance, place), own)), 0))];
  }));
  return sum(kept.map(({ names: [first, second], part }) => {
    const [rows, columns] = [first, second].map((name) => coordinates.of.get(name).place);
    const asked = rows.every((r) => columns.every((c) => Number.isFinite(secondVariance[r][c])));
    const tables = [rows[0], columns[0]].every((at) => Number.isFinite(variance[at]));
    return 2 * (1 - part) * (tables && !asked ? ASSUMED_RELATION : UNCERTAIN_RELATION) * size.get(first) * size.get(second);
  }));
}
