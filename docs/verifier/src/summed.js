// The results that follow from published sums (docs/protocol.md, "Models of sums").
import { chanceOf, indicatorCovariance, seenThrough } from "./additive.js";
import { clip, dot, eigen, mean, range, solve, sum, zeros } from "./algebra.js";
import { demand } from "./bytes.js";
import { shapeOf } from "./designs.js";
import { drawnRows } from "./graphical.js";
import { scaled } from "./histogram.js";
import { additiveTables } from "./learn.js";
import { ratio } from "./mechanisms.js";
import { alike, coordinatesOf, guessError, invertible, kept, pairsOf, seconds } from "./moments.js";
import { normalBelow, rule } from "./rule.js";

const [UNIT, LARGEST] = [65536n, 2 ** 53];
const ABOVE = 1 + 2 ** -40;
const nine = (value) => Number(value.toPrecision(9));
const product = (numbers) => numbers.reduce((all, one) => all * one, 1);

// The nearest integer to a / b, b > 0, ties to even.
export function nearest(a, b) {
  let [whole, left] = [a / b, a % b];
  if (left < 0n) [whole, left] = [whole - 1n, left + b];
  return 2n * left > b || (2n * left === b && whole % 2n) ? whole + 1n : whole;
}

// The results of a study of sums: { model } or { model, rows }. `sums`: of each round its values, how many are in it, and
// the variance of all tellers' noise as a ratio. `given`: the public rows, if any.
export function resultsOf(study, sums, given) {
  const [survey] = study.surveys;
  if (["tables", "marginals"].includes(survey.kind)) return tables(study, survey, sums[0]);
  if (survey.kind === "scores") return { tables: rule(study, sums) };
  return { linear: linearOfSums(study, survey, sums, given) };
}

// The linear model of one sum of a survey's vectors, as `linearOf` takes it.
export const linearResult = (study, survey, summed, given) => linearOfSums(study, survey, [summed], given);

function linearOfSums(study, survey, sums, given) {
  const [intercept, ...weights] = (LINEAR[survey.kind] ?? (() => demand(false, "of no known sum")))(study, survey, sums, given);
  let chance = survey.kind === "moments" && !study.records ? chanceOfProducts(survey, sums[0]) : null;
  if (study.surveys.at(-1).kind === "check") chance = chanceOfAgreement(study.surveys.at(-1), sums.at(-1));
  return { weights: weights.map(bounded), intercept: bounded(intercept), chance, ...linearParts(study, survey) };
}

// A sentence about tables with a cell that no members make; the last digits of their equations say nothing.
export function beyondReason({ surveys: [{ kind }] }, { values, summed, noise }) {
  const far = BigInt(summed) + BigInt(Math.ceil(20 * Math.sqrt(ratio(...noise))));
  const strange = ["tables", "marginals"].includes(kind) && values.some((one) => one > far || one < -far);
  return strange ? `it was not recomputed: a count of its sum is not one that ${summed} members and the tellers' noise make` : "";
}

const bounded = (weight) => clip(weight, -LARGEST, LARGEST);

// Names of the features with a weight, and of the one that is predicted.
function linearParts(study, survey) {
  const target = survey.kind === "moments" && !survey.parameters[1] ? survey.features.at(-1) : null;
  const columns = survey.kind === "moments" ? survey.features : study.features.map((one) => one.name);
  return { names: columns.filter((name) => name !== target), target };
}

// The reaches of all columns, and the symmetric matrix of their products.
function productsOf({ cards, parameters }, values) {
  const reaches = [Math.min(...cards), ...cards, ...(parameters[1] ? [Number(parameters[1])] : [])];
  const matrix = zeros(reaches.length, reaches.length);
  let at = 0;
  for (let i = 0; i < reaches.length; i++) for (let j = i; j < reaches.length; j++) matrix[i][j] = matrix[j][i] = Number(values[at++]);
  return { reaches, matrix };
}

// How often noise alone would have made such products with the last column.
function chanceOfProducts(survey, { values, summed, noise }) {
  const { reaches, matrix } = productsOf(survey, values);
  const [last, one] = [reaches.length - 1, reaches[0]];
  const S = matrix.map((row, i) => row.map((entry, j) => entry / (reaches[i] * reaches[j])));
  const far = 20 * Math.sqrt(ratio(...noise));
  if (last < 2 || S.some((row, i) => row.some((entry, j) => Math.abs(entry) > summed + far / (reaches[i] * reaches[j])))) return 1;
  const [p, q] = [reaches[1], reaches[last]].map((reach) => ratio(...noise) / (reach * one) ** 2);
  const shrunk = Number(survey.parameters[0]) < sum(reaches.map((reach) => reach ** 2));
  const m = shrunk ? clip(S[0][0], summed / 20, summed) : summed;
  const features = range(last - 1).map((i) => i + 1);
  const a = features.map((i) => S[i][0] / m);
  const b = S[0][last] / m;
  const kept = Math.max(0, 1 - (a.length * p) / m ** 2 / Math.max(dot(a, a), 1e-300));
  const v = clip(S[last][last] / m - Math.max(b ** 2 - q / m ** 2, 0), 0.01, 1);
  const { values: found, vectors } = eigen(features.map((i) => features.map((j) => S[i][j] - m * a[i - 1] * a[j - 1])));
  const positive = found.map((value) => Math.max(value, 0));
  const scale = (Math.max(sum(found), 0) / Math.max(sum(positive), 1e-300)) * ((v * m) / summed);
  const common = kept * (q + (shrunk ? b ** 2 * p : 0));
  const covariance = a.map((x, i) => a.map((y, j) => Number(i === j) * (q + b ** 2 * p) + common * x * y + scale * sum(vectors.map((row, k) => positive[k] * row[i] * row[j]))));
  const g = features.map((i) => clip(S[i][i], m / 100, m));
  const diagonal = (numbers) => numbers.map((value, i) => numbers.map((_, j) => (i === j ? value : 0)));
  const seen = seenThrough(covariance, diagonal(g), diagonal(g.map((value) => (v * m) / value)), features.map((i) => S[i][last] - m * a[i - 1] * b), a.map(() => 0));
  return chanceOf(seen, [0.02, 0.04, 0.08, 0.16, 0.32]);
}

// How often noise alone would have had as many who check agree with the model.
function chanceOfAgreement(survey, { values, summed, noise }) {
  const mark = Number(shapeOf(survey).mark);
  const share = Number(survey.parameters[8]);
  const [label, side, agreed] = values.map((value) => Number(value) / mark);
  const [n, v] = [summed / share, ratio(...noise) / mark ** 2];
  if (n < 4 * Math.sqrt(v)) return 1;
  const [a, b] = [label, side].map((one) => clip((one / n) ** 2 - v / n ** 2, 0, 1));
  const members = n * Math.max(1 - a, 16 / n) * Math.max(1 - b, 16 / n) + n * (1 - 1 / share) * a * b;
  const deviation = Math.sqrt(members + v * (1 + a + b) + (v / n + 1) ** 2);
  return normalBelow(-(agreed - (label * side) / n) / deviation);
}

// Linear models: the intercept first, then the weights

const LINEAR = {
  gradient(study, survey, sums) {
    const { parameters, columns } = { ...survey, ...shapeOf(survey) };
    const { many } = shapeOf(survey);
    const [scale, , , step, perStep, momentum, perMomentum, last] = parameters;
    const rounds = study.surveys.filter((one) => one.kind === "gradient").length;
    const share = rounds < study.surveys.length ? study.surveys.at(-1).parameters[8] : 0n;
    let standing = { weights: Array(columns).fill(0n), speeds: Array(columns).fill(0n), totals: Array(columns).fill(0n) };
    sums.slice(0, rounds).forEach(({ values, summed, noise: [up, down] }, round) => {
      const own = values.slice(0, columns);
      const [members, squares] = [BigInt(summed), own.reduce((all, one) => all + one * one, 0n)];
      let units = share ? nearest(members * (share - 1n), share) || 1n : members;
      if (many.record) units = [nearest(values[columns], scale), members].reduce((a, b) => (a > b ? a : b));
      if (many.record && units > members * many.most) units = members * many.most;
      const left = squares * down - BigInt(columns) * up;
      const factor = squares && left > 0n ? [left * step * UNIT, squares * down * perStep * units * scale] : [0n, 1n];
      const speeds = own.map((entry, i) => nearest(momentum * standing.speeds[i] * factor[1] - factor[0] * entry * perMomentum, perMomentum * factor[1]));
      const edge = UNIT * UNIT;
      const weights = speeds.map((speed, i) => standing.weights[i] + speed).map((one) => (one > edge ? edge : one < -edge ? -edge : one));
      const counted = BigInt(round) + 1n > BigInt(rounds) - last;
      standing = { weights, speeds, totals: counted ? standing.totals.map((one, i) => one + weights[i]) : standing.totals };
    });
    return standing.totals.map((total) => ratio(total, last * UNIT));
  },

  moments(study, survey, [{ values, noise }]) {
    const { reaches, matrix } = productsOf(survey, values);
    const { parameters } = survey;
    const size = reaches.length;
    const right = matrix.slice(0, -1).map((row) => row[size - 1]);
    const { values: found, vectors } = eigen(matrix.slice(0, -1).map((row) => row.slice(0, -1)));
    const positive = found.map((one) => Math.max(one, 0));
    const added = Math.max(Math.sqrt(ratio(...noise)) * Math.sqrt(right.length), 1e-9 * Math.max(...positive), 1e-300);
    const parts = vectors.map((row, k) => dot(row, right) / (positive[k] + added));
    const weights = right.map((_, i) => sum(vectors.map((row, k) => row[i] * parts[k])));
    const stretch = parameters[1] ? 2 : 1;
    return weights.map((weight, i) => stretch * nine((weight * reaches[i]) / reaches.at(-1)));
  },

  weights(study, { parameters }, [{ values, summed }]) {
    const [scale, , , , , up, down] = parameters;
    const unit = summed * Number(scale) * ratio(up, down) * Math.sqrt(values.length);
    return values.map((one) => Number(one) / unit);
  },

  votes(study, { parameters }, [{ values, summed }], given) {
    const [scale, many, , up, down, normUp, normDown] = parameters;
    const [norm, length] = [ratio(normUp, normDown), values.length];
    const rows = publicRows(study, given, Number(many), norm);
    const votes = values.map((one) => ratio(one, BigInt(summed) * scale));
    return transferred(rows, votes, ratio(up, down)).map((weight) => nine(weight) / (norm * Math.sqrt(length)));
  },
};

// The w of least (1 / N) sum log(2 cosh(w.x / 2)) - w.s + (lambda / 2) |w|^2, by Newton's steps.
function transferred(rows, votes, strength) {
  const loss = (own) => mean(rows.map((row) => dot(row, own) / 2).map((half) => Math.abs(half) + Math.log1p(Math.exp(-2 * Math.abs(half))))) - dot(votes, own) + (strength * dot(own, own)) / 2;
  let weights = votes.map(() => 0);
  for (let step = 0; step < 100; step++) {
    const halves = rows.map((row) => Math.tanh(dot(row, weights) / 2));
    const slope = weights.map((one, i) => sum(rows.map((row, k) => row[i] * halves[k])) / (2 * rows.length) - votes[i] + strength * one);
    const curvature = weights.map((_, i) => weights.map((__, j) => sum(rows.map((row, k) => row[i] * row[j] * (1 - halves[k] ** 2))) / (4 * rows.length) + (i === j ? strength : 0)));
    const moved = solve(curvature, slope);
    const [at, before] = [(length) => weights.map((one, i) => one - length * moved[i]), loss(weights)];
    let length = 1;
    while (loss(at(length)) > before && length > 2 ** -40) length /= 2;
    weights = at(length);
    if (Math.max(...slope.map(Math.abs)) < 1e-14) break;
  }
  return weights;
}

const NUMBER = /^\s*[+-]?(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?\s*$/;

// Public rows, each a 1 and then the features' values from -1 to 1, as a vector of length 1 at most.
function publicRows(study, given, many, norm) {
  const wrong = "given 0: expected a table of finite numbers, one column for each feature";
  demand(given, "given 0: not among the documents");
  const [first, ...lines] = commaSeparated(new TextDecoder("utf-8", { ignoreBOM: true }).decode(given));
  const names = study.features.map((one) => one.name);
  demand(first && [...first].sort().join("\n") === [...names].sort().join("\n"), wrong);
  demand(lines.every((line) => line.length === first.length && line.every((text) => NUMBER.test(text))), wrong);
  const found = lines.map((line) => line.map((text) => Number(text.replaceAll("_", ""))));
  demand(found.every((line) => line.every(Number.isFinite)), wrong);
  demand(found.length === many, `given 0: expected ${many} rows, got ${found.length}`);
  const longest = norm * Math.sqrt(names.length + 1) * ABOVE;
  return found.map((line) => {
    const reals = study.features.map((feature) => {
      const [[low, high], number] = [scaled(feature), line[first.indexOf(feature.name)]];
      return clip(((feature.scale === "log" ? Math.log1p(Math.max(number, 0)) : number) - (low + high) / 2) / ((high - low) / 2), -1, 1);
    });
    const row = [1, ...reals].map((real) => real / longest);
    const length = Math.sqrt(dot(row, row));
    return length <= 1 / ABOVE ? row : row.map((real) => real / (length * ABOVE));
  });
}

// RFC 4180: fields between commas, in quotation marks where they hold some of these signs.
function commaSeparated(text) {
  const rows = [];
  for (const line of text.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n")) rows.push(line.split(",").map((one) => one.replace(/^"(.*)"$/, "$1").replaceAll('""', '"')));
  return rows;
}

// Tables of counts

function tables(study, survey, summed) {
  const moments = summedMoments(study, survey, summed);
  const found = { tables: additiveTables(study, moments, []) };
  if (survey.kind === "tables") return found;
  return { ...found, rows: drawnRows(study, tablesOf(survey, summed), summed, moments.rate, Number(survey.parameters[0])) };
}

// Each block's shares, which sum up to 1, and the variance of the noise on each.
function tablesOf(survey, { values, summed, noise }) {
  const variance = ratio(...noise) / summed ** 2;
  let start = 0;
  return shapeOf(survey).blocks.map((block) => {
    const shares = values.slice(start, (start += block.length)).map((cell) => Number(cell) / summed);
    const off = (1 - sum(shares)) / shares.length;
    return { ...block, shares: shares.map((share) => share + off), variance, shape: [...block.cards, ...(block.labelled ? [2] : [])] };
  });
}

// Sums of a table over all axes but some, flat, and how many cells are in each.
export function marginal({ shares, shape }, axes) {
  const steps = shape.map((_, i) => product(shape.slice(i + 1)));
  const found = new Float64Array(product(axes.map((axis) => shape[axis])));
  shares.forEach((share, cell) => (found[axes.reduce((at, axis) => at * shape[axis] + (Math.floor(cell / steps[axis]) % shape[axis]), 0)] += share));
  return { cells: found, merged: shares.length / found.length };
}

function summedMoments(study, survey, summed) {
  const all = tablesOf(survey, summed);
  const coordinates = coordinatesOf(study.features);
  const { size, features } = coordinates;
  const guess = study.learning.base_rate;
  const { rate, rateError } = summedRate(all.filter((one) => one.labelled), guess, summed.summed);
  const [shares, contrast, variance] = [new Float64Array(size), new Float64Array(size), new Float64Array(size).fill(Infinity)];
  for (const { name, card, place } of features) {
    const own = all.filter((one) => one.features.includes(name));
    const told = study.features.find((one) => one.name === name).shares;
    const found = own.map((one) => categoryShares(one, name));
    const common = summedShares(found, told.length ? told : undefined, card);
    place.forEach((at, i) => (shares[at] = common[i]));
    const labelled = own.filter((one) => one.labelled).map((one) => labelledShares(one, name));
    if (!labelled.length) continue;
    const precision = labelled.map((one) => 1 / one.variance);
    const pooled = range(card).map((i) => sum(labelled.map((one, k) => precision[k] * ((1 - rate) * one.cells[2 * i + 1] - rate * one.cells[2 * i]))) / sum(precision));
    place.forEach((at, i) => ([contrast[at], variance[at]] = [pooled[i] - mean(pooled), (rate ** 2 + (1 - rate) ** 2) / sum(precision)]));
  }
  const [second, secondVariance] = seconds(coordinates, all.flatMap((one) => pairsOf(one.features).map((names) => {
    const { cells, merged } = marginal(one, names.map((name) => one.features.indexOf(name)));
    const wide = one.cards[one.features.indexOf(names[1])];
    return { names, block: range(cells.length / wide).map((i) => cells.slice(i * wide, (i + 1) * wide)), weight: 1 / (one.variance * merged) };
  })));
  const made = { coordinates, rate, rateError, shares, contrast, variance, second, secondVariance, bits: [], reports: () => summed.summed };
  return { ...made, noise: () => summedNoise(made, summed.summed) };
}

function labelledShares(table, name) {
  const { cells, merged } = marginal(table, [table.features.indexOf(name), table.shape.length - 1]);
  return { cells, variance: table.variance * merged };
}

function categoryShares(table, name) {
  const { cells, merged } = marginal(table, [table.features.indexOf(name)]);
  return { cells, variance: table.variance * merged };
}

function summedRate(tables, guess, units) {
  const [rates, precision] = [[guess], [1 / guessError(guess) ** 2]];
  if (tables.length) {
    const each = tables.map((one) => 4 / (one.variance * one.shares.length));
    const found = tables.map((one) => sum(one.shares.filter((_, cell) => cell % 2)));
    precision.push(1 / (1 / sum(each) + (guess * (1 - guess)) / units));
    rates.push(dot(each, found) / sum(each));
  }
  return { rate: clip(dot(rates, precision) / sum(precision), 0.01, 0.99), rateError: sum(precision) ** -0.5 };
}

function summedShares(found, guess, card) {
  let precision = 1 / (((guess ? 0.1 : 0.3) * 2) / Math.max(card, 2)) ** 2;
  const total = (guess ?? alike(card)).map((share) => share * precision);
  for (const { cells, variance } of found) {
    cells.forEach((share, i) => (total[i] += share / variance));
    precision += 1 / variance;
  }
  const shares = total.map((one) => Math.max(one / precision, 0.005));
  return shares.map((share) => share / sum(shares));
}

// Who takes part, with the covariance of the categories themselves, the tellers' noise, and the base rate's error.
function summedNoise(moments, units) {
  const { coordinates, rate, rateError, shares, variance } = moments;
  const { covariance } = indicatorCovariance(moments);
  const whole = covariance.map((row) => row.map((one) => ((rate * (1 - rate)) / units) * one));
  const common = new Float64Array(coordinates.size);
  for (const { place, card } of coordinates.features) {
    const own = Number.isFinite(variance[place[0]]) ? variance[place[0]] : 0;
    const middle = mean(place.map((at) => shares[at]));
    place.forEach((i) => {
      place.forEach((j) => (whole[i][j] += own * ((i === j) - 1 / card)));
      common[i] = shares[i] - middle;
    });
  }
  whole.forEach((row, i) => row.forEach((_, j) => (row[j] += rateError ** 2 * common[i] * common[j])));
  return kept(invertible(whole, coordinates.features), variance);
}
