// Shares, contrasts and pairs of categories as all surveys measure them, with their noise (docs/protocol.md, "Moments").
import { applied, dot, picked, range, sum, times, transposed, zeros } from "./algebra.js";
import { SCALE, joint, nearestShares, ratio } from "./mechanisms.js";

const [GUESS_ERROR, UNKNOWN_ERROR, RAREST] = [0.1, 0.3, 0.005];
const clip = (value, low, high) => Math.min(Math.max(value, low), high);
const mean = (numbers) => sum(numbers) / numbers.length;
const product = (numbers) => numbers.reduce((all, one) => all * one, 1);
export const guessError = (guess) => (guess === undefined || guess === 0.5 ? UNKNOWN_ERROR : GUESS_ERROR);
export const alike = (card) => Array(card).fill(1 / card);

// Each category of each feature is one coordinate, feature after feature.
export function coordinatesOf(features, directed = true) {
  let at = 0;
  const made = features.map(({ name, cardinality: card, kind, missing, expects }) => {
    const place = range(card).map((i) => at + i);
    at += card;
    return { name, card, place, numeric: kind === "numeric", own: missing === "own", expects: directed ? expects : [] };
  });
  return { features: made, size: at, of: new Map(made.map((one) => [one.name, one])) };
}

// A survey's unbiased shares with their covariance, a diagonal and a few factors, at plausible shares of its cells.
function tableNoise(tally, plausible, weights) {
  const { built, counts, n } = tally;
  const [keep, other] = [ratio(built.p, SCALE), ratio(built.q, SCALE)];
  const scale = n * (keep - other) ** 2;
  const rates = plausible.map((share) => other + (keep - other) * share);
  const shares = counts.map((count) => (count / n - other) / (keep - other));
  const made = { ...tally, shares, weights };
  if (built.name === "krr") return { ...made, extra: rates.map((rate) => rate / scale), factors: rates.map((rate) => [rate]), middle: [[-1 / scale]] };
  const [first, second] = joint(built);
  const apart = first - second;
  const middle = [[second, apart, 0], [apart, 0, 0], [0, 0, -1]].map((row) => row.map((one) => one / scale));
  const extra = rates.map((rate, i) => (rate - second - 2 * apart * plausible[i]) / scale);
  return { ...made, extra, factors: plausible.map((share, i) => [1, share, rates[i]]), middle };
}

export function covarianceOf({ extra, factors, middle }, folding) {
  const low = times(folding, factors);
  const far = times(low, middle);
  const weighted = folding.map((row) => row.map((one, k) => one * extra[k]));
  return folding.map((_, i) => Float64Array.from(folding, (other, j) => dot(weighted[i], other) + dot(far[i], low[j])));
}

// Of each cell the category of one feature.
function categories({ features, cards }, name) {
  const at = features.indexOf(name);
  const [below, card] = [2 * product(cards.slice(at + 1)), cards[at]];
  return range(2 * product(cards)).map((cell) => Math.floor(cell / below) % card);
}

// The rows that sum a feature's categories out of all cells, with weights by category and label.
function foldingOf(table, name, weights) {
  const own = categories(table, name);
  return weights.map((row, category) => Float64Array.from(own, (one, cell) => (one === category ? row[cell % 2] : 0)));
}

const contrastWeights = (rates) => [...rates].map((rate) => clip(rate, 0.01, 0.99)).map((rate) => [-rate, 1 - rate]);
const scaled = (rows, factor) => rows.map((row) => row.map((one) => one * factor));
const trace = (a) => sum(a.map((row, i) => row[i]));
const cellVariances = ({ extra, factors, middle }) => factors.map((row, i) => extra[i] + dot(applied(middle, row), row));

function unrelated(shares, rate) {
  return shares.reduceRight((cells, own) => own.flatMap((share) => cells.map((cell) => share * cell)), [1 - rate, rate]);
}

function steadied(tally, cells, weights) {
  const found = tableNoise(tally, cells, weights);
  const apart = found.shares.map((share, i) => share - cells[i]);
  const distance = dot(apart, apart);
  const kept = distance > 0 ? Math.max(0, 1 - sum(cellVariances(found)) / distance) : 0;
  return tableNoise(tally, nearestShares(cells.map((cell, i) => cell + kept * apart[i])), weights);
}

const asksLabelAlone = (bit) => bit.signs.every((sign) => sign === bit.signs[0]);

// A one-bit survey: `mean` estimates E[b (y - a)].
export function bitOf({ survey, features, built, parameters }, { n, counts }) {
  const centre = ratio(parameters[0], SCALE);
  const gap = ratio(built.p - built.q, SCALE);
  const scale = Math.max(centre, 1 - centre);
  const signs = parameters.slice(1).map((above) => (above ? 1 : -1));
  return { survey, feature: features[0], centre, signs, n, scale, mean: (((2 * counts[1]) / n - 1) / gap) * scale, variance: scale ** 2 / (n * gap ** 2) };
}

function rateOf(tables, bits, guess) {
  const found = [[guess, guessError(guess) ** 2]];
  for (const table of tables) {
    const positive = [Float64Array.from(table.shares, (_, cell) => cell % 2)];
    found.push([dot(positive[0], table.shares), covarianceOf(table, positive)[0][0]]);
  }
  for (const bit of bits.filter(asksLabelAlone)) found.push([bit.mean * bit.signs[0] + bit.centre, bit.variance]);
  const precision = found.map(([, variance]) => 1 / Math.max(variance, 1e-12));
  const all = sum(precision);
  const rate = sum(found.map(([value], i) => precision[i] * value)) / all;
  return { rate: clip(rate, 0.01, 0.99), error: all ** -0.5, parts: precision.slice(1, 1 + tables.length).map((one) => one / all) };
}

function sharesOf(coordinates, tables, guessed) {
  const [shares, errors] = [new Float64Array(coordinates.size), new Float64Array(coordinates.size)];
  for (const { name, card, place } of coordinates.features) {
    const guess = guessed.get(name);
    let precision = 1 / (((guess ? GUESS_ERROR : UNKNOWN_ERROR) * 2) / Math.max(card, 2)) ** 2;
    const total = (guess ?? alike(card)).map((share) => share * precision);
    for (const table of tables.filter((one) => one.features.includes(name))) {
      const folding = foldingOf(table, name, Array(card).fill([1, 1]));
      const weight = 1 / Math.max(trace(covarianceOf(table, folding)) / card, 1e-12);
      applied(folding, table.shares).forEach((share, i) => (total[i] += weight * share));
      precision += weight;
    }
    const found = total.map((one) => Math.max(one / precision, RAREST));
    place.forEach((at, i) => ([shares[at], errors[at]] = [found[i] / sum(found), precision ** -0.5]));
  }
  return [shares, errors];
}

function contrasts(coordinates, tables, rate) {
  const [contrast, variance] = [new Float64Array(coordinates.size), new Float64Array(coordinates.size).fill(Infinity)];
  for (const { name, card, place } of coordinates.features) {
    const asked = tables.filter((one) => one.features.includes(name));
    if (!asked.length) continue;
    const [pooled, noise] = [new Float64Array(card), zeros(card, card)];
    for (const table of asked) {
      const folding = scaled(foldingOf(table, name, contrastWeights(Array(card).fill(rate))), table.weights.get(name));
      applied(folding, table.shares).forEach((one, i) => (pooled[i] += one));
      covarianceOf(table, folding).forEach((row, i) => row.forEach((one, j) => (noise[i][j] += one)));
    }
    const centred = doublyCentred(noise);
    place.forEach((at, i) => ([contrast[at], variance[at]] = [pooled[i] - mean(pooled), Math.max(centred[i][i], 1e-18)]));
  }
  return [contrast, variance];
}

export function doublyCentred(a) {
  const [rows, columns] = [a.map(mean), transposed(a).map(mean)];
  const all = mean(rows);
  return a.map((row, i) => row.map((one, j) => one - rows[i] - columns[j] + all));
}

function weightsOf(tables, rate) {
  const precision = tables.map((table) => new Map(table.features.map((name, i) => {
    const folding = foldingOf(table, name, contrastWeights(Array(table.cards[i]).fill(rate)));
    return [name, 1 / Math.max(trace(covarianceOf(table, folding)) / table.cards[i], 1e-12)];
  })));
  const totals = new Map();
  for (const found of precision) for (const [name, one] of found) totals.set(name, (totals.get(name) ?? 0) + one);
  return precision.map((found) => new Map([...found].map(([name, one]) => [name, one / totals.get(name)])));
}

// How often two categories of different features go together, and the variance: infinite where no table asked. Each item:
// the two features' names, their block of shares, and its weight.
export function seconds(coordinates, items) {
  const [second, precision] = [zeros(coordinates.size, coordinates.size), zeros(coordinates.size, coordinates.size)];
  for (const { names, block, weight } of items) {
    const [rows, columns] = names.map((name) => coordinates.of.get(name).place);
    rows.forEach((r, i) => columns.forEach((c, j) => {
      for (const [a, b] of [[r, c], [c, r]]) [second[a][b], precision[a][b]] = [second[a][b] + weight * block[i][j], precision[a][b] + weight];
    }));
  }
  const over = second.map((row, i) => row.map((one, j) => (precision[i][j] > 0 ? one / precision[i][j] : 0)));
  return [over, precision.map((row) => row.map((one) => (one > 0 ? 1 / one : Infinity)))];
}

export const pairsOf = (names) => names.flatMap((first, i) => names.slice(i + 1).map((second) => [first, second]));

function pairsIn(table) {
  const variance = cellVariances(table);
  return pairsOf(table.features).map((names) => {
    const own = names.map((name) => categories(table, name));
    const [rows, columns] = names.map((name) => table.cards[table.features.indexOf(name)]);
    const [block, noise] = [zeros(rows, columns), zeros(rows, columns)];
    table.shares.forEach((share, cell) => {
      block[own[0][cell]][own[1][cell]] += share;
      noise[own[0][cell]][own[1][cell]] += variance[cell];
    });
    return { names, block, weight: 1 / Math.max(mean(noise.map(mean)), 1e-12) };
  });
}

function bitMoments(coordinates, bits, rate, shares, errors) {
  return bits.filter((bit) => !asksLabelAlone(bit)).map((bit) => {
    const { place } = coordinates.of.get(bit.feature);
    const signs = new Float64Array(coordinates.size);
    place.forEach((at, i) => (signs[at] = bit.signs[i]));
    const off = rate - bit.centre;
    const doubt = 2 * Math.max(...place.map((at) => errors[at]));
    return { signs, value: bit.mean - off * dot(signs, shares), variance: bit.variance + (off * doubt) ** 2 };
  });
}

// Everything counted. `tables` and `bits` with their answers; `guessed`: by feature, shares that are declared or known.
export function gather(coordinates, tables, bits, guessed, guess) {
  const told = tables.filter((one) => one.n > 0);
  const asked = bits.filter((one) => one.n > 0);
  const at = (rate) => told.map((one) => tableNoise(one, unrelated(one.cards.map(alike), rate)));
  const rough = rateOf(at(guess), asked, guess).rate;
  const read = at(rough);
  const { rate, error, parts } = rateOf(read, asked, guess);
  const [shares, errors] = sharesOf(coordinates, read, guessed);
  const apart = told.map((one) => unrelated(one.features.map((name) => coordinates.of.get(name).place.map((i) => shares[i])), rate));
  const weights = weightsOf(told.map((one, i) => tableNoise(one, apart[i])), rate);
  const steady = told.map((one, i) => steadied(one, apart[i], weights[i]));
  const [contrast, variance] = contrasts(coordinates, steady, rate);
  const [second, secondVariance] = seconds(coordinates, steady.flatMap(pairsIn));
  const measuredBits = bitMoments(coordinates, asked, rate, shares, errors);
  const reports = (name) => sum(told.filter((one) => one.features.includes(name)).map((one) => one.n))
    + sum(asked.filter((bit) => bit.feature === name && !asksLabelAlone(bit)).map((bit) => bit.n));
  const made = { coordinates, rate, rateError: error, shares, contrast, variance, second, secondVariance, bits: measuredBits, reports };
  return { ...made, noise: (effects) => countedNoise(made, steady, parts, effects) };
}

// The covariance of all measurements, contrasts first and then bits.
function countedNoise({ coordinates, rate, rateError, shares, variance, bits }, tables, parts, effects) {
  const { size, features, of } = coordinates;
  const counted = zeros(size + 1, size + 1);
  counted[size][size] = rateError ** 2;
  tables.forEach((table, k) => {
    const places = table.features.map((name) => of.get(name).place);
    const rows = table.features.flatMap((name, i) => scaled(foldingOf(table, name, contrastWeights(places[i].map((at) => rate + effects[at]))), table.weights.get(name)));
    rows.push(Float64Array.from(table.shares, (_, cell) => (cell % 2) * parts[k]));
    const at = [...places.flat(), size];
    const covariance = covarianceOf(table, rows);
    at.forEach((i, r) => at.forEach((j, c) => (counted[i][j] += covariance[r][c])));
    counted[size][size] -= covariance.at(-1).at(-1);
  });
  const turned = zeros(size + bits.length, size + 1);
  for (const { place, card } of features.filter((one) => variance[one.place[0]] < Infinity)) {
    const common = mean(place.map((at) => shares[at]));
    for (const i of place) {
      for (const j of place) turned[i][j] = (i === j) - 1 / card;
      turned[i][size] = common - shares[i];
    }
  }
  bits.forEach(({ signs }, i) => (turned[size + i][size] = -dot(signs, shares)));
  const whole = times(times(turned, counted), transposed(turned));
  bits.forEach((bit, i) => (whole[size + i][size + i] += bit.variance));
  return kept(invertible(whole, features), variance, bits.length);
}

// A feature's contrasts sum to 0: its block has a positive number in that direction.
export function invertible(whole, features) {
  for (const { place, card } of features) {
    const added = Math.max(sum(place.map((at) => whole[at][at])), 1e-18) / card ** 2;
    for (const i of place) for (const j of place) whole[i][j] += added;
  }
  return whole;
}

export const measuredOf = (variance) => range(variance.length).filter((at) => variance[at] < Infinity);
export const kept = (whole, variance, bits = 0) => picked(whole, [...measuredOf(variance), ...range(bits).map((i) => variance.length + i)]);
