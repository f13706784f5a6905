// Designs of exact sums: what a vector is, its proof, and what it costs (docs/protocol.md, "The designs of sums").
import { demand } from "./bytes.js";
import { different } from "./forms.js";
import { ratio } from "./mechanisms.js";

export const MODULUS = 4611686018427387897n * 2n ** 66n + 1n;
const NANO = 10n ** 9n;
const [MOST_REACH, MOST_WORK, MOST_CELLS, MOST_DRAWN, MOST_ROUNDS, MOST_CORRECTIONS] = [1024n, 2 ** 26, 2 ** 20, 100_000n, 60, 10];
const LEAST_ONE_IN = 4n;
const SLACK = [1n, 1n << 25n];
const FINEST = 2 ** 40;
export const [CELLS, RULE_SCALE, CLASSIFIERS] = [8, 1024n, 3n];
const big = (amounts) => amounts.reduce((all, one) => all + one, 0n);
const most = (amounts) => amounts.reduce((all, one) => (one > all ? one : all));
const least = (a, b) => (a < b ? a : b);
const bitLength = (value) => value.toString(2).length;
const ceiling = (a, b) => (a + b - 1n) / b;

export function isqrt(value) {
  if (value < 2n) return value;
  let root = 1n << BigInt((bitLength(value) + 1) >> 1);
  for (;;) {
    const next = (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

// (sqrt(squared) + halves sqrt(length) / 2)^2, rounded down: a norm after rounding.
function rounded(squared, length, halves) {
  const size = BigInt(length) * halves * halves;
  return (4n * squared + size + isqrt(16n * squared * size)) / 4n;
}

// (scale x norm + sqrt(length) / 2)^2, rounded down; the norm is a ratio.
function scaledNorm(length, scale, [up, down]) {
  const [p, size] = [scale * up, BigInt(length)];
  return (4n * p * p + size * down * down + isqrt(16n * p * p * down * down * size)) / (4n * down * down);
}

// Lambda's logistic regression

export function longestWeights([up, down]) {
  const squared = ratio(27_847n * down, 100_000n * up);
  const root = [BigInt(Math.ceil(Math.sqrt(squared) * 2 ** 24) + 1), 1n << 24n];
  const [p, q] = down * root[1] < root[0] * up ? [down, up] : root;
  return [p * SLACK[1] + q * SLACK[0], q * SLACK[1]];
}

const movedByOne = ([up, down], fewest) => [2n * down * SLACK[1] + 2n * SLACK[0] * up * fewest, up * fewest * SLACK[1]];
const smaller = (a, b) => (a[0] * b[1] <= b[0] * a[1] ? a : b);

function stepsFor([up, down]) {
  const mu = ratio(up, down);
  const start = 0.5 * Math.log((2 * Math.log(2)) / mu) - Math.log(2 ** -26);
  return Math.max(1, Math.ceil((2 * start) / -Math.log1p(-Math.sqrt(mu / (0.25 + mu)))));
}

const demandWork = (cells, strength) => demand(2 * cells * stepsFor(strength) <= MOST_WORK, "design: fitting takes a member's machine too long");

function scaleFor(length, [up, down]) {
  const wanted = (400 * Math.sqrt(length)) / ratio(up, down);
  let scale = 1;
  while (scale < Math.min(wanted, FINEST)) scale *= 2;
  return BigInt(scale);
}

// A ratio of parameters: in lowest terms, of at most nine decimals, within bounds.
function demandRatio([up, down], low, high, what) {
  const common = (a, b) => (b ? common(b, a % b) : a);
  demand(down > 0n && common(up, down) === 1n && NANO % down === 0n, `design: ${what} is no ratio in lowest terms of at most nine decimals`);
  const value = Number(up) / Number(down);
  demand(low <= value && value <= high, `design: ${what} is out of its bounds`);
}

// Shapes: the length of a vector, the blocks or the largest sum of squares that its proof states, how far one unit moves the
// sum, how many records of a member it takes, and what the model needs.

export function tableBlocks({ kind, features, cards, parameters }) {
  const places = kind === "tables" ? parameters : parameters.slice(1);
  demand(places.length % 2 === 0 && places.every((at) => at < BigInt(features.length)), "design: pairs of features that are not there");
  const pairs = [];
  for (let i = 0; i < places.length; i += 2) pairs.push([Number(places[i]), Number(places[i + 1])]);
  demand(pairs.every(([a, b]) => a !== b) && different(pairs.map(String)), "design: a pair twice, or of one feature");
  const single = features.map((_, at) => ({ at: [at], labelled: true }));
  const double = pairs.map((at) => ({ at, labelled: kind === "marginals" }));
  const alone = single.filter(({ at }) => !pairs.flat().includes(at[0]));
  const blocks = kind === "tables" ? [...single, ...double] : [...double, ...alone];
  demand(blocks.length, "design: expected a table");
  return blocks.map(({ at, labelled }) => {
    const own = at.map((i) => cards[i]);
    const length = own.reduce((all, card) => all * card, labelled ? 2 : 1);
    demand(length >= 2, "design: a table of fewer than two cells");
    return { features: at.map((i) => features[i]), cards: own, labelled, length };
  });
}

function tables(survey) {
  const blocks = tableBlocks(survey);
  const lengths = blocks.map((block) => block.length);
  return { blocks, lengths, length: lengths.reduce((all, one) => all + one, 0), moved: 2n * BigInt(blocks.length) };
}

function moments({ features, cards, parameters, many }) {
  const [declared, label] = parameters;
  const squares = [Math.min(...cards), ...cards, ...(label ? [Number(label)] : [])].map((reach) => BigInt(reach) ** 2n).sort((a, b) => (a < b ? 1 : -1));
  demand(declared >= 1n && features.length, "design: expected a radius, and columns");
  const length = (squares.length * (squares.length + 1)) / 2;
  const total = big(squares);
  const radius = least(declared, total);
  const fourth = (budget) => squares.reduce(([all, left], limit) => [all + limit * least(limit, left), left - least(limit, left)], [0n, budget])[0];
  const averages = !many.record && many.most > 1n;
  const own = (radius ** 2n + fourth(radius)) / 2n;
  const squared = averages ? rounded(own, length, 1n) : own;
  const ends = [radius, total, 2n * radius];
  squares.reduce((end, one) => (ends.push(end - one), end - one), 2n * total);
  ends.push(2n * total);
  const apart = (both) => radius ** 2n + (both - radius) ** 2n + fourth(least(both, 2n * total - both));
  const farthest = most(ends.filter((end) => radius <= end && end <= 2n * radius).map(apart)) / 2n;
  const bits = many.told ? bitLength(squares[0] * (many.record ? many.most : 1n)) + 1 : Infinity;
  return { length, proven: squared * (many.record ? many.most ** 2n : 1n), moved: averages ? rounded(farthest, length, 2n) : farthest, bits };
}

function gradient({ features, parameters: [scale, up, down], many }) {
  demand(scale >= 1n && up > 0n && down > 0n, "design: expected a scale and a clip");
  const columns = features.length + 1;
  const norm = scaledNorm(columns, scale, [up, down]);
  demand(norm >= 1n && many.most >= 1n, "design: at this clip every gradient is rounded to nothing");
  const own = norm + (many.record ? scale ** 2n : 0n);
  return { length: columns + (many.record ? 1 : 0), columns, proven: own * (many.record ? many.most ** 2n : 1n), moved: most([4n * norm, own]) };
}

// Three marks of a member that checks a model.
function check(survey) {
  const { length, columns, proven } = gradient(survey);
  const mark = isqrt(proven / 3n);
  demand(columns >= 3 && mark >= 1n && !survey.many.told, "design: a check is of one record, with two columns beside the constant");
  return { length, proven, mark, moved: 8n * mark ** 2n };
}

function weights({ features, parameters, many }) {
  const [scale, up, down, clipUp, clipDown, normUp, normDown, fewest] = parameters;
  demand(up > 0n && down > 0n && clipDown > 0n && normUp > 0n && normUp <= normDown && scale >= 1n, "design: expected a scale, and ratios");
  demand(fewest >= 1n && fewest <= many.most, "design: expected at most as many fewest records as a member has");
  const length = features.length + 1;
  const strength = [up, down];
  const longest = clipUp ? smaller([clipUp, clipDown], longestWeights(strength)) : longestWeights(strength);
  const norm = scaledNorm(length, scale, longest);
  const [p, q] = movedByOne(strength, fewest);
  const moved = rounded(ceiling((scale * p) ** 2n, q ** 2n), length, 8n);
  return { length, proven: norm, moved: many.record ? least(4n * norm, moved) : 4n * norm, longest };
}

function votes({ features, parameters: [scale, rows, , , down, normUp, normDown] }) {
  demand(scale >= 1n && rows >= 1n && down > 0n && normUp > 0n && normUp <= normDown, "design: expected a scale, public rows, and ratios");
  const norm = scaledNorm(features.length + 1, scale, [1n, 2n]);
  return { length: features.length + 1, proven: norm, moved: 4n * norm };
}

function rule({ kind, cards }) {
  const told = cards.reduce((all, card) => all + card - 1, 0);
  const root = [isqrt(BigInt(cards.length) << 40n) + 1n, 1n << 20n];
  const proven = scaledNorm(Math.max(1, told), RULE_SCALE, [2n * root[0], 5n * root[1]]);
  const mark = isqrt(proven);
  return { length: Math.max(CELLS, told), told, proven, mark, moved: kind === "scores" ? 2n * mark ** 2n : 4n * proven };
}

const KINDS = {
  tables: { own: null, shape: tables }, marginals: { own: null, shape: tables }, moments: { own: 2, shape: moments }, gradient: { own: 8, shape: gradient },
  check: { own: 9, shape: check },
  weights: { own: 8, shape: weights }, votes: { own: 7, shape: votes }, scores: { own: 0, shape: rule }, residuals: { own: 0, shape: rule },
};

export function shapeOf(survey) {
  demand(Object.hasOwn(KINDS, survey.kind), `survey ${survey.survey}: of no sum that is known`);
  const { own, shape } = KINDS[survey.kind];
  const [, ...told] = own === null ? [0] : [0, ...survey.parameters.slice(own)];
  const right = own === null || told.length === 0 || (told.length === 2 && own > 0 && told[1] <= 1n);
  demand(right && (own === null || survey.parameters.length >= own), `survey ${survey.survey}: expected the parameters of its design`);
  const many = { told: told.length > 0, most: told[0] ?? 1n, record: told[1] === 1n };
  return { ...shape({ ...survey, many }), many };
}

// Proofs

function powerOfTwo(value) {
  let power = 1;
  while (power < value) power *= 2;
  return power;
}

function shortestChunk(...lengths) {
  const all = lengths.reduce((a, b) => a + b, 0);
  const proof = (chunk) => chunk + powerOfTwo(1 + lengths.reduce((calls, length) => calls + Math.ceil(length / chunk), 0));
  let best = 1;
  for (let chunk = 2; chunk <= Math.min(all, 8 * Math.floor(Math.sqrt(all)) + 8); chunk++) if (proof(chunk) < proof(best)) best = chunk;
  return best;
}

// Kind and parameters of a survey's circuit.
function circuitOf(shape) {
  if (shape.blocks) return { kind: "blocks", parameters: [shortestChunk(shape.length), ...shape.lengths].map(BigInt) };
  const radius = isqrt(shape.proven - 1n) + 1n;
  const bits = Math.min(bitLength(radius) + 1, shape.bits ?? Infinity);
  const chunk = shortestChunk(shape.length * bits + bitLength(radius ** 2n), shape.length);
  return { kind: "ball", parameters: [BigInt(chunk), BigInt(shape.length), BigInt(bits), radius] };
}

// Bytes of the leader's share; a proof has at most 8,192 elements.
export function leaderShare({ kind, parameters: [chunk, ...others] }) {
  const [size, bits, radius] = others;
  demand(kind === "blocks" || (bits <= 128n && most([size << (2n * (bits - 1n)), radius ** 2n]) < MODULUS), "sum: squares could add up to more than the modulus");
  const length = Number(kind === "blocks" ? big(others) : size * bits + BigInt(bitLength(radius ** 2n)));
  const of = (cells) => Math.ceil(cells / Number(chunk));
  const calls = of(length) + (kind === "ball" ? of(Number(size)) : 0);
  const proof = 2 * Number(chunk) + 2 * powerOfTwo(1 + calls) - 1;
  demand(proof <= 8192 && length <= 131_072, "sum: its proof, or its vector, is too long");
  return 16 * (length + proof) + 32;
}

// Forms

const FORMS = {
  "tables-sum"(study, [{ survey }]) {
    demand(survey.kind === "tables" && String(survey.cards) === String(study.features.map((one) => one.cardinality)), "design: tables-sum counts the categories of every feature");
  },
  marginals(study, [{ survey, shape }]) {
    demand(survey.kind === "marginals" && sameFeatures(study, survey), "design: marginals counts the categories of every feature");
    demand(survey.parameters[0] >= 1n && survey.parameters[0] <= MOST_DRAWN, "design: marginals draws 1 to 100,000 rows");
    const pairs = shape.blocks.filter((block) => block.features.length === 2).map((block) => block.features.map((name) => survey.features.indexOf(name)));
    const place = ([a, b]) => a * survey.features.length + b;
    demand(pairs.every((pair, i) => pair[0] < pair[1] && (i === 0 || place(pairs[i - 1]) < place(pair))), "design: marginals has its pairs in the features' order");
  },
  moments(study, [{ survey }]) {
    demand(survey.kind === "moments", "design: moments sums products");
    const [radius, label] = survey.parameters;
    const reaches = [...survey.cards.map(BigInt), ...(label ? [label] : [])];
    const [target, features] = [reaches.at(-1), reaches.slice(0, -1)];
    const reach = features[0] ?? 0n;
    demand(reach >= 1n && reach <= MOST_REACH && features.every((one) => one === reach), "design: expected one reach from 1 to 1,024 for all features");
    demand(target % reach === 0n && target >= reach && target / reach <= MOST_REACH, "design: the target's reach is 1 to 1,024 times the features'");
    demand(radius <= big([reach, ...features, target].map((one) => one * one)), "design: a radius beyond all columns at their ends");
  },
  gradient(study, rounds) {
    const [{ survey }] = rounds;
    const asked = study.records ? rounds : rounds.slice(0, -1);
    const spelled = ({ survey: { kind, features, cards, m, parameters } }) => String([kind, features, cards, m, parameters]);
    demand(survey.kind === "gradient" && asked.length >= 1 && asked.length <= MOST_ROUNDS && asked.every((one) => spelled(one) === spelled(rounds[0])), "design: gradient asks the same in each of at most 60 rounds");
    const { survey: last } = rounds.at(-1);
    const checks = last.kind === "check" && last.parameters[8] >= LEAST_ONE_IN && spelled({ survey: { ...last, kind: "gradient", parameters: last.parameters.slice(0, 8) } }) === spelled(rounds[0]);
    demand(study.records || checks, "design: the last round of gradient is checked by one member in 4 or more");
    const [scale, ...ratios] = survey.parameters;
    demandOnes(survey);
    demand(scale === 1024n && ratios[6] >= 1n && ratios[6] <= BigInt(asked.length), "design: expected the scale 1,024, and a last round");
    [["clip", 0.01, 100], ["step", 0.001, 100], ["momentum", 0, 0.99]].forEach(([what, low, high], i) => demandRatio(ratios.slice(2 * i, 2 * i + 2), low, high, what));
  },
  averaging(study, [{ survey, shape }]) {
    demand(survey.kind === "weights" && shape.many.told, "design: averaging sums weights that members fit to many records");
    const [scale, up, down, clipUp, clipDown, normUp, normDown, fewest] = survey.parameters;
    demandOnes(survey);
    [["lambda", [up, down], 0.0001, 10], ["clip", [clipUp, clipDown], 0, 1000], ["norm", [normUp, normDown], 0.01, 1]].forEach(([what, one, low, high]) => demandRatio(one, low, high, what));
    demandWork(Number(shape.many.most) * shape.length, [up, down]);
    const twice = [2n * shape.longest[0], shape.longest[1]];
    demand(scale === scaleFor(shape.length, shape.many.record ? smaller(twice, movedByOne([up, down], fewest)) : twice), "design: another scale than its parameters give");
  },
  transfer(study, [{ survey, shape }]) {
    demand(survey.kind === "votes", "design: transfer sums votes");
    const [scale, rows, classifier, up, down, normUp, normDown] = survey.parameters;
    demandOnes(survey);
    demand(classifier < CLASSIFIERS, "design: an unknown classifier of members");
    [["lambda", [up, down], 0.0001, 10], ["norm", [normUp, normDown], 0.01, 1]].forEach(([what, one, low, high]) => demandRatio(one, low, high, what));
    if (classifier === 0n) demandWork(Number(shape.many.most) * shape.length, [1n, 100n]);
    demand(Number(shape.many.most) * Number(rows) * shape.length <= MOST_WORK, "design: voting takes a member's machine too long");
    demand(scale === scaleFor(shape.length, [1n, 1n]), "design: another scale than its parameters give");
    demand(study.given?.length === 1, "design: transfer has one given document, of public rows");
  },
  rule(study, rounds) {
    demand(rounds.length >= 2 && rounds.length <= MOST_CORRECTIONS + 1, "design: rule has 2 to 11 rounds");
    demand(rounds.every(({ survey }, i) => survey.kind === (i ? "residuals" : "scores") && sameFeatures(study, survey)), "design: rule counts a score first, then residuals, of every feature in order");
  },
};

const sameFeatures = (study, survey) => survey.features.join("\n") === study.features.map((one) => one.name).join("\n") && String(survey.cards) === String(study.features.map((one) => one.cardinality));
const demandOnes = (survey) => demand(survey.cards.every((card) => card === 1), "design: expected cards of 1");
const COLUMNS = ["moments", "gradient", "weights", "votes"];
const TAKES_MANY = ["moments", "gradient", "averaging", "transfer"];

// All that a study of sums must declare, but for how its tellers' names look.
export function checkSumDesign(study) {
  const { surveys, slots, design, arrangement, records } = study;
  demand(slots.every((slot) => slot.rows.length === 1), "design: a slot of sums has one survey");
  demand(["gradient", "rule"].includes(design) || slots.length === 1, "design: expected one slot");
  demand(surveys.every((survey) => survey.exact), "manifest: a study of sums has exact surveys alone");
  demand(slots.every((slot, i) => slot.rows[0].survey === i) && surveys.every((survey, i) => survey.round === i), "manifest: expected the surveys in the order of slots and rounds");
  demand(surveys.every((survey, i) => i === 0 || surveys[i - 1].window.closes < survey.window.opens), "manifest: a round opens before the one before it has closed");
  const names = study.features.map((one) => one.name);
  const rounds = surveys.map((survey) => {
    demand(survey.features.length === names.length && survey.features.every((name) => names.includes(name)), `survey ${survey.survey}: expected every feature once`);
    const shape = shapeOf(survey);
    demand(shape.length === survey.m, `survey ${survey.survey}: expected a vector of ${shape.length} entries`);
    demandRecords(study, survey, shape);
    return { survey, shape };
  });
  FORMS[design](study, rounds);
  demand(!study.given || design === "transfer", "manifest: its design reads no given document");
  demand(!records || TAKES_MANY.includes(design), "manifest: its design takes one record of each member");
  demand(!records || records.most * (names.length + 1) <= MOST_CELLS, "manifest: so many records of so many queries are too many");
  demand(!surveys.some((one) => COLUMNS.includes(one.kind)) || study.features.every((one) => one.kind === "numeric"), "manifest: a column is a number");
  const fewest = Math.max(2, Math.ceil(study.cohort.minimum / 2));
  demand(arrangement.minimum === fewest, `manifest: a sum needs ${arrangement.minimum} members, expected ${fewest}`);
  demandSums(study, rounds);
}

function demandRecords({ records }, { survey, kind, parameters }, { many }) {
  const right = records ? many.told && Number(many.most) === records.most && many.record === (records.unit === "record") : !many.told;
  const fewest = kind !== "weights" || !records || Number(parameters[7]) === (records.least ?? 1);
  demand(right && fewest, `survey ${survey}: takes other records of a member than the study says`);
}

function demandSums(study, rounds) {
  const { sums, spare, tellers } = study.arrangement;
  demand(sums.length === rounds.length, "manifest: expected a sum for each survey");
  const times = spare ? 2n : 1n;
  const size = 32 * (spare ? 3 * 2 : tellers.length);
  const costs = rounds.map(({ survey, shape }, i) => {
    const [planned, { kind, parameters }] = [sums[i], circuitOf(shape)];
    const right = planned.round === i && planned.slot === i && planned.kind === kind && String(planned.parameters) === String(parameters);
    demand(right, `manifest: the tellers would add up something else than survey ${i} says`);
    const [up, down] = planned.noise;
    const rho = times * ceiling(shape.moved * NANO * down, 2n * up);
    demand(survey.epsilon === rho, `manifest: survey ${i} declares other noise than the tellers would add`);
    demand(survey.size === size, `manifest: survey ${i} has packets of another size`);
    return rho;
  });
  // A member trains or checks.
  const cost = most([false, true].map((checks) => big(costs.filter((_, i) => (rounds[i].survey.kind === "check") === checks))));
  demand(study.epsilon >= cost, `manifest: declares rho ${study.epsilon} but its surveys cost ${cost}`);
  demand(study.epsilon_per_attribute >= cost, "manifest: declares too small a per-attribute epsilon");
}

