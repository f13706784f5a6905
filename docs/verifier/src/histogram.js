// Histograms: the form of the designs, their cost, rounds of binning, cuts (docs/protocol.md, "Histograms").
import { INT, decode, demand, encode, same, typeOf } from "./bytes.js";
import { SCALE, nearestShares, ratio, supported, unbiased } from "./mechanisms.js";

const [RULE, MOST_SUMS] = [["middle", "score", "side"], 100_000n];
export const asksLabel = ({ kind }) => ["histogram", "bit", "side", "score"].includes(kind);
export const hasRule = (study) => study.surveys.some((survey) => survey.kind === "score");
const product = (numbers) => numbers.reduce((all, one) => all * one, 1);
const max = (amounts) => amounts.reduce((most, one) => (one > most ? one : most), 0n);
const sum = (amounts) => amounts.reduce((all, one) => all + one, 0n);

const KINDS = {
  histogram(survey, cards) {
    survey.features.forEach((name, i) => demand(cards.get(name) === survey.cards[i], `survey ${survey.survey}: another cardinality of ${name}`));
    demand(survey.m === 2 * product(survey.cards), `survey ${survey.survey}: m is twice the product of the cards`);
  },
  bit(survey, cards) {
    demand(survey.features.length === 1 && cards.get(survey.features[0]) === survey.cards[0], `survey ${survey.survey}: another cardinality, or several features`);
    demand(survey.m === 2 && survey.mechanism === "krr", `survey ${survey.survey}: a one-bit survey is binary random response`);
    const [centre, ...above] = survey.parameters.length ? survey.parameters : [0n];
    const signs = above.length === survey.cards[0] && above.every((one) => one <= 1n) && above.includes(1n);
    demand(signs, `survey ${survey.survey}: expected a sign for each category, some 1`);
    demand(centre > 0n, `survey ${survey.survey}: expected a centre above 0`);
  },
  quantile: levels,
  threshold: levels,
  middle: ofScore,
  side: ofScore,
  score: ofScore,
};

function ofScore({ survey, kind, features, cards: own, m, mechanism, parameters }, cards) {
  demand(features.length >= 2 && features.every((name, i) => cards.get(name) === own[i]), `survey ${survey}: another cardinality, or a single feature`);
  demand(m === 2 && mechanism === "krr", `survey ${survey}: a one-bit survey is binary random response`);
  const centred = kind === "score";
  demand(parameters.length === Number(centred) && (!centred || parameters[0] > 0n), `survey ${survey}: expected a centre above 0 of a score alone`);
}

function levels(survey) {
  demand(survey.features.length === 1 && survey.cards[0] === survey.m, `survey ${survey.survey}: a binning survey asks one feature of m levels`);
}

export function checkHistogram(study) {
  demand(!study.part && !study.given && !study.records, "manifest: a histogram has no part, no given documents and one record of each");
  demand(!study.surveys.some((survey) => survey.exact || survey.written), "manifest: a histogram's answers are perturbed");
  demand(study.features.length, "manifest: expected features");
  const cards = new Map(study.features.map((feature) => [feature.name, feature.cardinality]));
  for (const survey of study.surveys) {
    demand(Object.hasOwn(KINDS, survey.kind) && survey.features.length, `survey ${survey.survey}: of another kind, or about nothing`);
    KINDS[survey.kind](survey, cards);
    demand(!survey.parameters.length || ["bit", "score"].includes(survey.kind), `survey ${survey.survey}: parameters belong to a one-bit survey`);
  }
  const tables = study.slots.map((slot) => slot.rows.map((row) => study.surveys[row.survey]));
  if (study.design === "one-packet") demandOnePacket(tables);
  else demandPaper(tables);
  demandCost(study, tables);
  demandCuts(study);
  demandRule(study);
}

function demandOnePacket(tables) {
  demand(tables.length === 1, "design: one-packet has one slot");
  demand(!tables[0].some((survey) => survey.kind === "threshold"), "design: one-packet finds cuts in one round");
}

function demandPaper(tables) {
  const [asked, binned] = [[], []];
  for (const surveys of tables) {
    const kinds = [...new Set(surveys.map((survey) => survey.kind))];
    const features = [...new Set(surveys.flatMap((survey) => survey.features))];
    demand(kinds.length === 1, "design: a slot of paper is of one kind");
    if (kinds[0] === "histogram") asked.push(...features);
    else if (features.length === 1 && kinds[0] !== "bit") binned.push(...features);
    else demand(false, "design: a slot of paper asks histograms or finds the cuts of one feature");
  }
  const once = (names) => new Set(names).size === names.length;
  demand(asked.length && once(asked) && once(binned), "design: no feature is in two slots of paper");
}

// The dearest row of every slot, summed; and eq. 6: for one feature or the label.
function demandCost(study, tables) {
  const cost = sum(tables.map((surveys) => max(surveys.map((survey) => survey.epsilon))));
  demand(study.epsilon >= cost, `manifest: declares epsilon ${study.epsilon} but its surveys cost ${cost}`);
  const touching = (touches) => sum(tables.map((surveys) => max(surveys.filter(touches).map((survey) => survey.epsilon))));
  const names = [...new Set(study.surveys.flatMap((survey) => survey.features))];
  const each = names.map((name) => touching((survey) => survey.features.includes(name)));
  demand(study.epsilon_per_attribute >= max([touching(asksLabel), ...each]), "manifest: declares too small a per-attribute epsilon");
}

export const featureOf = (study, name) => study.features.find((feature) => feature.name === name);
const binning = (study) => study.surveys.filter((survey) => !asksLabel(survey));

function surveysOf(study, name) {
  return binning(study).filter((survey) => survey.features[0] === name).sort((a, b) => a.round - b.round);
}

function demandCuts(study) {
  for (const survey of binning(study).filter((one) => one.kind !== "middle")) demand(featureOf(study, survey.features[0]).binned, `survey ${survey.survey} asks for cuts that are known`);
  for (const feature of study.features.filter((one) => one.binned)) {
    const asked = surveysOf(study, feature.name);
    const quantile = asked.length === 1 && asked[0].kind === "quantile" && asked[0].round === 0 && asked[0].m >= feature.bins;
    const steps = asked.length && asked.every((survey, i) => survey.kind === "threshold" && survey.round === i && survey.m === 2);
    demand(quantile || (feature.bins === 2 && steps), `manifest: its surveys about ${feature.name} find no cuts`);
  }
}

export function directions(feature) {
  const own = feature.missing === "own" ? [[0n, 1n]] : [];
  if (feature.kind === "categorical") return [...feature.expects.map((sign) => [BigInt(sign), 1n]), ...own];
  const bins = feature.cardinality - own.length;
  const spaced = Array.from({ length: bins }, (_, i) => (bins > 1 ? [BigInt(feature.expects[0] * (2 * i - bins + 1)), BigInt(bins - 1)] : [0n, 1n]));
  return [...spaced, ...own];
}

// Questions about a declared score: of its middle, a side and the score, about all features with a direction and once each.
function demandRule(study) {
  const asked = study.surveys.filter((survey) => RULE.includes(survey.kind));
  if (!asked.length) return;
  const told = study.features.filter((one) => one.expects.length);
  demand(told.every((one) => !one.binned), "manifest: a rule adds up a feature whose cuts are not known");
  demand(declaredSums(told) <= MOST_SUMS, "manifest: a rule has more sums than a program answers");
  demand(String(asked.map((one) => one.kind).sort()) === String(RULE) && study.slots.length === 1, "manifest: a rule asks for its middle, a side and a score, once each");
  const names = String(told.map((one) => one.name));
  asked.forEach((survey) => demand(String(survey.features) === names, `survey ${survey.survey}: its features are not those with a direction`));
}

// How many sums of directions there can be, as whole numbers of their common denominator.
function declaredSums(told) {
  const common = (a, b) => (b ? common(b, a % b) : a);
  const each = told.map(directions);
  const whole = each.flat().reduce((all, [up, down]) => {
    const lowest = down / common(up < 0n ? -up : up, down);
    return (all / common(all, lowest)) * lowest;
  }, 1n);
  return sum(each.map((own) => {
    const numbers = own.map(([up, down]) => (up * whole) / down);
    const least = numbers.reduce((all, one) => (one < all ? one : all));
    return max(numbers.map((one) => one - least));
  })) + 1n;
}

// Where scores lie, from the answers about their middle: drawn to 0 by the noise.
export function middleOf(study, answers) {
  const { survey, built } = study.surveys.find((one) => one.kind === "middle");
  const { n, counts: [plus] } = answers.get(survey);
  if (!n) return 0;
  const gap = ratio(built.p - built.q, SCALE);
  const [found, noise, known] = [(1.5 * ((2 * plus) / n - 1)) / gap, 2.25 / (n * gap ** 2), 0.8 ** 2];
  return (found * known) / (known + noise);
}

// Rounds and their documents

export function rounds(study) {
  const turns = [...new Set(binning(study).map((survey) => survey.round))].sort((a, b) => a - b);
  return turns.map((turn) => ({ document: placeOf(study, turn), surveys: binning(study).filter((survey) => survey.round === turn), turn }));
}

function placeOf(study, turn) {
  const last = Math.max(...binning(study).map((survey) => survey.round));
  return turn === last ? ["edges", 0] : ["thresholds", turn + 1];
}

function heading(study, [kind, part]) {
  return kind === "thresholds" ? [1, study.id, part] : [1, study.id];
}

// The bytes of a round's document, from how many answered each of its surveys and how many support each category.
export function countsBody(study, round, tallies) {
  const rows = round.surveys.map((survey) => {
    const { n, counts } = tallies.get(survey.survey);
    return [survey.features[0], [n, survey.kind === "quantile" ? counts : counts[1]]];
  });
  rows.sort(([a], [b]) => encode(a).length - encode(b).length || (a < b ? -1 : 1));
  return encode([...heading(study, round.document), new Map(rows)]);
}

export function parseCounts(study, [kind, part], body) {
  const found = decode(body);
  const round = rounds(study).find(({ document }) => document[0] === kind && document[1] === part);
  demand(round && Array.isArray(found) && found.at(-1) instanceof Map, `${kind} ${part}: not this study's document`);
  demand(same(encode(found.slice(0, -1)), encode(heading(study, [kind, part]))), `${kind} ${part}: for another study or version`);
  const told = found.at(-1);
  demand(told.size === round.surveys.length, `${kind} ${part}: expected the counts of its features`);
  const answers = new Map();
  for (const survey of round.surveys) {
    const row = told.get(survey.features[0]);
    demand(Array.isArray(row) && row.length === 2 && typeOf(row[0]) === INT, `${kind} ${part}: expected answers and their counts`);
    const [n, counts] = row;
    const listed = survey.kind === "quantile" ? counts : [counts];
    demand(n >= 0n && n <= 1_000_000n, `${kind} ${part}: an impossible number of answers`);
    demand(Array.isArray(listed) && listed.length === (survey.kind === "quantile" ? survey.m : 1), `${kind} ${part}: a count for each level`);
    demand(listed.every((count) => typeOf(count) === INT && count >= 0n && count <= n), `${kind} ${part}: counts that cannot be`);
    answers.set(survey.survey, { n: Number(n), counts: listed.map(Number) });
  }
  return answers;
}

export function tally(survey, reports) {
  const counts = Array(survey.m).fill(0);
  for (const report of reports) for (const category of supported(survey.built, report)) counts[category] += 1;
  return { n: reports.length, counts };
}

// Counts to learn from, by survey of the label: of the reports that train and of those that only score. All but those of histograms train.
export function tallies(study, reports) {
  const of = (survey, own) => tally(survey, own ?? []);
  return new Map(study.surveys.filter(asksLabel).map((survey) => {
    const [train, score] = reports.get(survey.survey) ?? [[], []];
    return [survey.survey, survey.kind === "histogram" ? [of(survey, train), of(survey, score)] : [of(survey, [...train, ...score])]];
  }));
}

// Cuts

// A feature's range in its scale.
export const scaled = (feature) => (feature.scale === "log" ? feature.range.map(Math.log1p) : feature.range);
const unscaled = (feature, value) => (feature.scale === "log" ? Math.expm1(value) : value);

function levelEdges(feature, count) {
  const [low, high] = scaled(feature);
  return Array.from({ length: count - 1 }, (_, i) => unscaled(feature, low + ((high - low) * (i + 1)) / count));
}

function edgesFrom(edges, estimates, n, bins) {
  const shares = nearestShares(estimates.map((one) => one / Math.max(n, 1)));
  const cuts = [];
  let start = 0;
  for (let left = bins; left > 1; left--) {
    const target = shares.slice(start).reduce((all, one) => all + one, 0) / left;
    let [best, reached, miss] = [start, 0, Infinity];
    for (let level = start; level < shares.length - left + 1; level++) {
      reached += shares[level];
      if (Math.abs(reached - target) < miss) [best, miss] = [level, Math.abs(reached - target)];
    }
    cuts.push(edges[best]);
    start = best + 1;
  }
  return cuts;
}

function median(feature, surveys, answers) {
  const [low, high] = scaled(feature);
  let search = { estimate: (low + high) / 2, step: (high - low) / 2, asked: 0, yes: 0 };
  for (const survey of surveys) {
    const { n, counts } = answers.get(survey.survey);
    const [asked, yes] = [search.asked + n, search.yes + counts[0]];
    search = { ...search, asked, yes };
    if (!asked) continue;
    const [p, q, raw] = [Number(survey.p) / Number(SCALE), Number(survey.q) / Number(SCALE), yes / asked];
    const fraction = (raw - q) / (p - q);
    const margin = Math.sqrt(Math.max(raw * (1 - raw), 1 / (4 * asked)) / asked) / (p - q);
    if (Math.abs(fraction - 0.5) <= margin) continue;
    const step = search.step / 2;
    search = { estimate: search.estimate + (fraction > 0.5 ? step : -step), step, asked: 0, yes: 0 };
  }
  const value = unscaled(feature, search.estimate);
  return feature.range[0] <= value && value < feature.range[1] ? value : feature.range[0];
}

export function featureCuts(study, feature, answers) {
  if (!feature.binned) return feature.cuts;
  const surveys = surveysOf(study, feature.name);
  if (surveys[0].kind === "threshold") return [median(feature, surveys, answers)];
  const { n, counts } = answers.get(surveys[0].survey);
  return edgesFrom(levelEdges(feature, surveys[0].m), unbiased(surveys[0].built, counts, n), n, feature.bins);
}

export function studyCuts(study, answers) {
  return new Map(study.features.filter((one) => one.kind === "numeric").map((one) => [one.name, featureCuts(study, one, answers)]));
}


// How common each category is, where that is declared or finding the cuts told it.
export function knownShares(study, answers) {
  const found = new Map();
  for (const feature of study.features) {
    const own = feature.missing === "own" ? [0.01] : [];
    if (feature.shares.length) found.set(feature.name, feature.shares);
    else if (feature.binned) found.set(feature.name, [...binShares(study, feature, answers).map((share) => share * (1 - (own[0] ?? 0))), ...own]);
  }
  return found;
}

function binShares(study, feature, answers) {
  const [first] = surveysOf(study, feature.name);
  if (first.kind === "threshold") return [0.5, 0.5];
  const { n, counts } = answers.get(first.survey);
  const levels = nearestShares(unbiased(first.built, counts, n).map((one) => one / Math.max(n, 1)));
  const edges = levelEdges(feature, first.m);
  const places = [0, ...featureCuts(study, feature, answers).map((cut) => edges.indexOf(cut) + 1), first.m];
  return places.slice(1).map((end, i) => levels.slice(places[i], end).reduce((all, one) => all + one, 0));
}
