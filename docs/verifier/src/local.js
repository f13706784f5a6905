// The local rule: one bit of a declared score, and bits about features (docs/protocol.md, "The local rule").
import { ABSTAIN_FROM, declared, priorOf } from "./additive.js";
import { applied, dot, mean, picked, range, sum, times, transposed, whitening } from "./algebra.js";
import { SCALE, ratio } from "./mechanisms.js";
import { bitOf, coordinatesOf, gather } from "./moments.js";
import { normalBelow, spread, twoDigits } from "./rule.js";

const [WRONG, WEIGHTS] = [[0, 0.2, 0.35, 0.5, 1], [0.6, 0.12, 0.15, 0.08, 0.05]];
const [SIZES, OTHERS, NONE] = [[0.02, 0.04, 0.08, 0.12, 0.18], [0, 0.04, 0.08, 0.16, 0.32], 0.7];
const COVARIANCES = range(10).map((i) => 0.03 * (i + 1));
const [RELATION, CONTRADICTED] = [0.2, 0.02];
const [SLOPE, FAR, DISTANCE, LEFT] = [0.5, 2.06 + 1.645, 0.96, 0.85];
const gapOf = (built) => ratio(built.p - built.q, SCALE);

// Tables, base rate, chance and belief, as `learn` gives those of other designs.
export function localRule(study, tallies, guessed) {
  const asked = (kind) => study.surveys.filter((survey) => survey.kind === kind);
  const counted = (survey) => tallies.get(survey.survey)[0];
  const bits = asked("bit").map((survey) => bitOf(survey, counted(survey)));
  const [[score], [side]] = [asked("score"), asked("side")];
  const moments = gather(coordinatesOf(study.features), [], bits, guessed, study.learning.base_rate);
  const evidence = evidenceOf(sideOf(score, counted(score)), sideOf(side, counted(side)), ratio(score.parameters[0], SCALE), moments);
  const { effects, direction } = believed(moments, evidence);
  const heard = study.features.filter((one) => one.expects.length).length;
  const { rate } = moments;
  const unit = 1 / (rate * (1 - rate) * (1 + RELATION * Math.max(0, heard - 1)));
  const tables = study.features.map(({ name, cardinality }) => {
    const odds = moments.coordinates.of.get(name).place.map((at) => unit * effects[at]);
    return { features: [name], cards: [cardinality], reports: moments.reports(name), f1: 0, auc: 0.5, weight: 0, log_odds: odds, votes: odds.map((one) => Number(one > 0)), errors: [] };
  });
  const against = normalBelow(evidence.value / Math.sqrt(evidence.variance));
  const chance = 2 * Math.min(against, 1 - against);
  const members = sum([score, side, ...asked("bit")].map((survey) => counted(survey).n));
  const belief = { features: heard, heard: heardOf(effects, direction, moments.coordinates), members, against, contradicted: against <= CONTRADICTED, enough: enough(study, score) };
  return { rate, threshold: chance > ABSTAIN_FROM ? 0.5 : rate, chance, tables, belief };
}

function sideOf({ built }, { n, counts }) {
  const gap = gapOf(built);
  return { mean: n ? ((2 * counts[1]) / n - 1) / gap : 0, variance: 1 / (Math.max(n, 0.1) * gap ** 2) };
}

// The covariance of the side with the label: what a wrong guess of the base rate makes of it is taken off.
function evidenceOf(score, side, centre, { rate, rateError }) {
  const [scale, off, apart] = [Math.max(centre, 1 - centre), rate - centre, rateError ** 2];
  const doubt = Math.max(0, off ** 2 * side.variance + side.mean ** 2 * apart - apart * side.variance);
  return { value: scale * score.mean - off * side.mean, variance: scale ** 2 * score.variance + doubt };
}

function enough(study, { survey, built }) {
  const guess = study.learning.base_rate;
  const told = guess * (1 - guess) * SLOPE * DISTANCE;
  const answers = Math.ceil(((FAR * Math.max(guess, 1 - guess)) / (told * gapOf(built) * LEFT)) ** 2);
  const { rows } = study.slots[0];
  return twoDigits((answers * sum(rows.map((row) => row.weight))) / rows.find((row) => row.survey === survey).weight);
}

function heardOf(effects, direction, { features }) {
  const along = dot(effects, direction);
  if (along <= 0) return 1;
  const part = along / dot(direction, direction);
  const spreads = (of) => sum(features.map(({ place }) => spread(place.map(of))));
  const whole = spreads((at) => effects[at]);
  return whole ? Math.min(1, spreads((at) => effects[at] - part * direction[at]) / whole) : 0;
}

const logSum = (a, b) => Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));

// The posterior mean of each category's effect: over how many features are declared wrongly, mu, tau, and each feature's way.
function believed(moments, evidence) {
  const { coordinates, shares } = moments;
  const [direction, kernel] = [declared(coordinates, shares), priorOf(coordinates)];
  const noise = moments.noise(new Float64Array(coordinates.size));
  const features = coordinates.features.map(({ place }) => featureOf(moments.bits, place, shares, direction, noise, kernel));
  const found = ofScore(evidence).flatMap((score, r) => SIZES.flatMap((size) => OTHERS.map((_, t) => {
    const leans = features.map(({ told, seen }) => (told ? wayOf(WRONG[r], size, seen[t]) : { evidence: 0, lean: 0 }));
    const prior = t ? (1 - NONE) / (OTHERS.length - 1) : NONE;
    const evidences = sum(features.map(({ seen }, f) => leans[f].evidence + seen[t].other));
    return { t, size, leans, log: evidences + Math.log(WEIGHTS[r]) + score + Math.log(prior) };
  })));
  const top = Math.max(...found.map((one) => one.log));
  const all = sum(found.map((one) => Math.exp(one.log - top)));
  const effects = new Float64Array(coordinates.size);
  OTHERS.forEach((_, t) => {
    const own = found.filter((one) => one.t === t).map((one) => ({ ...one, weight: Math.exp(one.log - top) / all }));
    const weight = sum(own.map((one) => one.weight));
    features.forEach((feature, f) => {
      const part = sum(own.map((one) => one.weight * one.size * one.leans[f].lean));
      meanOf(feature, t, part, weight).forEach((one, i) => (effects[feature.place[i]] += one));
    });
  });
  return { effects, direction };
}

// The log-likelihood of each part that is declared wrongly, by the score's bits.
function ofScore({ value, variance }) {
  const logs = WRONG.map((wrong) => COVARIANCES.map((one) => -((value - (1 - 2 * wrong) * one) ** 2) / 2 / variance));
  const top = Math.max(...logs.flat());
  return logs.map((own) => Math.log(Math.max(mean(own.map((one) => Math.exp(one - top))), 1e-300)));
}

// Of a feature, declared rightly or wrongly: the log of its evidence, and how much likelier rightly than wrongly.
function wayOf(wrong, size, { along, square }) {
  const [right, turned] = [1, -1].map((way) => way * size * along - (size ** 2 / 2) * square);
  if (wrong === 0 || wrong === 1) return wrong ? { evidence: turned, lean: -1 } : { evidence: right, lean: 1 };
  const ways = [Math.log(1 - wrong) + right, Math.log(wrong) + turned];
  const evidence = logSum(...ways);
  return { evidence, lean: Math.exp(ways[0] - evidence) - Math.exp(ways[1] - evidence) };
}

// The bits about one feature: values = design x effects + noise, and what they say at each tau.
function featureOf(bits, place, shares, direction, noise, kernel) {
  const asked = range(bits.length).filter((i) => place.some((at) => bits[i].signs[at]));
  const own = place.map((at) => shares[at]);
  const design = asked.map((i) => {
    const signs = place.map((at) => bits[i].signs[at]);
    const common = dot(signs, own);
    return Float64Array.from(own, (share, k) => share * (signs[k] - common));
  });
  const [values, toward] = [asked.map((i) => bits[i].value), place.map((at) => direction[at])];
  const known = design.map((row) => applied(picked(kernel, place), row));
  const clear = picked(noise, asked);
  const along = applied(design, toward);
  const seen = OTHERS.map((tau) => {
    const white = whitening(clear.map((row, i) => row.map((one, j) => one + tau ** 2 * dot(design[i], known[j]))));
    const [told, way] = [applied(white, values), applied(white, along)];
    return { white, along: dot(way, told), square: dot(way, way), size: dot(told, told), log: -2 * sum(white.map((row, i) => Math.log(row[i]))) };
  });
  seen.forEach((one) => (one.other = (seen[0].size - one.size - (one.log - seen[0].log)) / 2));
  return { place, values, toward, along, known, seen, told: toward.some((one) => one !== 0) };
}

// The mean effect at a tau, times the weight of that, where the part along the direction is so large.
function meanOf({ values, toward, along, known, seen }, t, part, weight) {
  const { white } = seen[t];
  const rest = applied(white, values.map((one, i) => weight * one - part * along[i]));
  const pulled = applied(transposed(white), rest);
  return toward.map((one, k) => part * one + OTHERS[t] ** 2 * sum(known.map((row, i) => row[k] * pulled[i])));
}
