// The manifest: its form, and for a histogram everything that it must declare (docs/protocol.md, "The fields of a manifest").
import { BYTES, FLOAT, LIST, TEXT, decode, demand, encode, fields, isBytes, typeOf } from "./bytes.js";
import { studyId } from "./chain.js";
import { tokenSize } from "./curve.js";
import { checkSumDesign } from "./designs.js";
import { addresses, bytes, different, float, floatText, int, line, list, matching, oneOf, plain, small, table, text } from "./forms.js";
import { checkHistogram } from "./histogram.js";
import { mechanism, supported } from "./mechanisms.js";
import { contextOf, occasionOf } from "./packets.js";
import { parseArrangement, sharesOf } from "./sums.js";

export const SEAL = 1136;
const LATEST = 2n ** 37n;
const MOST_EPSILON = 2n ** 40n;
const NAME = /^[a-z][a-z0-9_]{0,39}$/;
const PROTOCOLS = {
  "one-packet": "histogram", paper: "histogram", "tables-sum": "sum", marginals: "sum", moments: "sum", gradient: "sum",
  averaging: "sum", transfer: "sum", rule: "sum", "masked-moments": "masks", "masked-averaging": "masks", "masked-transfer": "masks",
  "oblivious-averaging": "oblivious", "group-averaging": "groups", trees: "trees",
};

const instant = int(0, LATEST);
const named = matching(NAME);

const TABLE = table({ name: named, columns: list(named) }, {}, (made, at) => {
  demand(made.columns.length && different(made.columns), `${at}.columns: expected at least one name and no repeats`);
});

const labelValue = (value, at) => {
  if (typeOf(value) === TEXT) return line(value, at);
  if (typeOf(value) === FLOAT) return floatText(float(value, at));
  return String(int(-(2n ** 53n), 2n ** 53n + 1n)(value, at));
};

export const LABEL = table(
  {
    name: named, description: plain(400, 1), query: plain(8000, 1), positive: list(labelValue), negative: list(labelValue),
    missing: oneOf("positive", "negative"),
  },
  {},
  (made, at) => {
    demand(made.positive.length && made.negative.length, `${at}: expected at least one value each`);
    demand(!made.positive.some((value) => made.negative.includes(value)), `${at}: expected lists without a common value`);
  },
);

export const FEATURE = table(
  {
    name: named, kind: oneOf("numeric", "categorical"), description: plain(400, 1), query: plain(8000, 1),
    missing: (value, at) => (typeOf(value) === TEXT ? value : float(value, at)),
    range: list(float), bins: int(-(2n ** 63n), 2n ** 63n), cuts: list(float), scale: oneOf("linear", "log"),
    categories: list(line), shares: list(float),
  },
  { expects: list(int(-1, 2)) },
  checkFeature,
);

function checkFeature(made, at) {
  made.bins = Number(made.bins);
  const own = made.missing === "own" ? 1 : 0;
  made.binned = made.kind === "numeric" && made.cuts.length === 0;
  if (made.kind === "numeric") {
    const [low, high] = made.range;
    demand(made.categories.length === 0, `${at}.categories: belongs to a categorical feature`);
    demand(made.range.length === 2 && low < high, `${at}.range: expected [minimum, maximum]`);
    demand(made.scale !== "log" || low >= 0, `${at}.scale: log needs a range from 0 on`);
    demand((made.cuts.length > 0) !== (made.bins !== 0), `${at}: expected bins or cuts`);
    demand(made.bins === 0 || (made.bins >= 2 && made.bins <= 32), `${at}.bins: expected 2 to 32`);
    demand(made.cuts.every((cut, i) => low <= cut && cut < high && (i === 0 || made.cuts[i - 1] < cut)), `${at}.cuts: expected increasing numbers`);
    demand(typeof made.missing === "number" || own, `${at}.missing: expected "own" or a number`);
    made.cardinality = (made.cuts.length ? made.cuts.length + 1 : made.bins) + own;
  } else {
    const { categories } = made;
    demand(made.range.length + made.cuts.length + made.bins === 0 && made.scale === "linear", `${at}: belongs to a numeric feature`);
    demand(categories.length >= 1 && categories.length <= 64 && different(categories), `${at}.categories: expected 1 to 64 different texts`);
    demand(own || (categories.length > 1 && categories.includes(made.missing)), `${at}.missing: expected "own" or one of the categories`);
    made.cardinality = categories.length + own;
  }
  const sum = made.shares.reduce((all, share) => all + share, 0);
  const right = made.shares.length === made.cardinality && Math.min(...made.shares) >= 0 && Math.abs(sum - 1) <= 0.01;
  demand(made.shares.length === 0 || right, `${at}.shares: expected shares that sum to 1`);
  if (made.expects) {
    const signs = made.kind === "numeric" ? 1 : made.categories.length;
    demand(made.expects.length === signs && made.expects.some((sign) => sign !== 0n), `${at}.expects: expected a sign each, and some other than 0`);
  }
  made.expects = (made.expects ?? []).map(Number);
}

const WINDOW = table({ opens: instant, closes: instant }, {}, (made, at) => demand(made.opens < made.closes, `${at}: opens before it closes`));

const SURVEY = table(
  {
    survey: small(0, 65536), kind: text, features: list(text), cards: list(small(1, 2 ** 20 + 1)), m: small(0, 2 ** 31), mechanism: text,
    p: int(0, 1n << 64n), q: int(0, 1n << 64n), epsilon: int(-MOST_EPSILON, MOST_EPSILON), window: WINDOW, round: small(0, 256),
  },
  { size: small(1, 2 ** 22 + 1), parameters: list(int(0, 1n << 64n)) },
  checkSurvey,
);

function checkSurvey(made, at) {
  demand(!made.parameters || made.parameters.length, `${at}.parameters: none are left out`);
  made.exact = made.mechanism === "exact";
  made.letters = made.mechanism === "letters";
  made.written = made.letters || made.mechanism === "posted";
  made.parameters = made.parameters ?? [];
  demand(made.features.length === made.cards.length, `${at}: expected one cardinality per feature`);
  if (made.exact) checkExact(made, at);
  else if (made.written) checkWritten(made, at);
  else checkPerturbed(made, at);
}

function checkExact(made, at) {
  demand(made.p === 0n && made.q === 0n && made.epsilon >= 0n, `${at}: an exact survey has no probabilities`);
  demand(made.m >= 1 && made.m <= 65536 && made.size, `${at}: expected a vector and a report`);
  made.reportSize = made.size;
  made.demandReport = (report) => report.length === made.size;
}

function checkWritten(made, at) {
  demand(made.p === 0n && made.q === 0n && made.epsilon >= 0n, `${at}: a written survey has no probabilities`);
  demand(made.m <= (made.letters ? 1024 : 1) && (!made.m || made.parameters.length), `${at}: too many seats, or no length of letters`);
  const letter = made.m ? made.parameters[0] : 0n;
  demand(made.size && BigInt(made.size) + BigInt(made.m) * (letter + BigInt(SEAL)) <= 2n ** 22n, `${at}: expected a text of at most 4 MiB in all`);
  const sealed = Number(letter) + SEAL;
  made.reportSize = encode([new Uint8Array(made.size), Array(made.m).fill(new Uint8Array(sealed))]).length;
  made.demandReport = (report) => {
    const [words, letters] = fields(report, [BYTES, LIST], "letters");
    return words.length === made.size && letters.length === made.m && letters.every((one) => isBytes(one) && one.length === sealed);
  };
}

function checkPerturbed(made, at) {
  made.built = mechanism(made.mechanism, made.m, made.p, made.q);
  demand(made.epsilon >= made.built.epsilon, `${at}: declares epsilon ${made.epsilon}, below the recomputed ${made.built.epsilon}`);
  demand(!made.size, `${at}: the size of a report follows from its mechanism`);
  made.reportSize = made.built.size;
  made.demandReport = (report) => supported(made.built, report) && true;
}

const SLOT = table({ slot: small(0, 255), rows: list(table({ survey: small(0, 65536), weight: small(1, 2 ** 28) })) }, {}, (made, at) => {
  demand(made.rows.length, `${at}: expected rows`);
  demand(made.rows.reduce((sum, row) => sum + row.weight, 0) < 2 ** 28, `${at}: expected weights that add up to less than 2^28`);
});

const TIMETABLE = table({ published: instant, enrol_closes: instant, settled: instant, ends: instant, margin: int(1, LATEST) }, {}, (made, at) => {
  const ordered = made.published <= made.enrol_closes && made.enrol_closes <= made.settled && made.settled <= made.ends;
  demand(ordered, `${at}: expected publishing, closing, settling and end in this order`);
});

const COHORT = table({ minimum: small(2, 1_000_001), maximum: small(2, 1_000_001), admission: oneOf("invite", "allow-list", "open") }, {},
  (made, at) => demand(made.minimum <= made.maximum, `${at}: expected minimum <= maximum`));

const LEARNING = table(
  {
    classifier: oneOf("soft", "logistic", "tree", "additive"), ensemble: oneOf("soft", "vote"), score: oneOf("f1", "auc"),
    score_share: float, base_rate: float,
  },
  {},
  (made, at) => {
    demand(made.base_rate >= 0.001 && made.base_rate <= 0.999, `${at}.base_rate: expected 0.001 to 0.999`);
    demand(made.classifier !== "additive" || made.ensemble === "soft", `${at}.ensemble: the additive classifier is soft`);
    const none = made.ensemble === "soft" && made.score_share === 0;
    demand(none || (made.score_share >= 0.05 && made.score_share <= 0.5), `${at}.score_share: expected 0.05 to 0.5, or 0`);
  },
);

const RECORDS = table({ most: small(1, 50_001), unit: oneOf("person", "record") }, { least: small(2, 50_001) }, (made, at) =>
  demand((made.least ?? 1) <= made.most, `${at}.least: at most most`));

const GIVEN = table({ name: named, description: line, digest: bytes(32), length: small(1, 2 ** 20 + 1) }, {}, (made, at) =>
  demand(made.description.trim(), `${at}.description: expected some text`));

const LANGUAGE = matching(/^[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}$/);
const TRANSLATION = table({ language: LANGUAGE }, {
  title: line, purpose: plain(8000, 1), data_source: plain(8000, 1),
  words: list(table({ name: named, description: plain(400, 1) }, {}, (made, at) => demand(made.description.trim(), `${at}: expected some text`))),
}, (made, at) => {
  const pieces = ["title", "purpose", "data_source"].filter((name) => made[name] !== undefined);
  demand(pieces.length || made.words, `${at}: expected at least one text`);
  demand(pieces.every((name) => made[name].trim() && made[name] === made[name].trim()), `${at}: expected texts without blanks around them`);
  demand(!made.words || (made.words.length && increasing(made.words.map((one) => one.name))), `${at}.words: expected different names in their order`);
});

// Texts of ASCII letters, digits, hyphens and underscores alone, which every order of characters puts alike.
const increasing = (texts) => texts.every((text, i) => i === 0 || texts[i - 1] < text);

function checkTexts(made, at) {
  if (!made.texts) return;
  const codes = made.texts.map((one) => one.language);
  demand(codes.length && made.language, `${at}.texts: expected some, beside a language of the main texts`);
  demand(increasing(codes) && !codes.includes(made.language), `${at}.texts: expected each language once, in their order`);
  const names = [made.label.name, ...made.features.map((one) => one.name)];
  const words = made.texts.flatMap((one) => one.words ?? []);
  demand(words.every((one) => names.includes(one.name)), `${at}.texts: words about nothing that is asked`);
  const pieces = [...made.texts.flatMap((one) => [one.title, one.purpose, one.data_source]), ...words.map((one) => one.description)];
  const size = pieces.reduce((sum, piece) => sum + new TextEncoder().encode(piece ?? "").length, 0);
  demand(size <= 65536, `${at}.texts: expected at most 64 KiB in all`);
}

const MANIFEST = table(
  {
    version: int(2, 3), title: line, purpose: plain(8000), contact: line, protocol: matching(/^[a-z][a-z0-9-]{0,39}$/), design: text,
    tables: list(TABLE), label: LABEL, features: list(FEATURE), surveys: list(SURVEY), slots: list(SLOT, 255), epsilon: int(0, MOST_EPSILON),
    epsilon_per_attribute: int(0, MOST_EPSILON), timetable: TIMETABLE, cohort: COHORT, learning: LEARNING,
    release: table({ transcript: oneOf("members", "public"), retention: instant }), aggregator_key: bytes(32), sealing_key: bytes(1216),
    credential_key: bytes(96), seed_commitment: bytes(32), report_size: small(0, 2 ** 31),
  },
  {
    cover: table({ connections: small(1, 65) }), address: addresses, data_source: plain(8000, 1), part: bytes(), records: RECORDS,
    given: list(GIVEN, 8), language: LANGUAGE, texts: list(TRANSLATION, 12),
  },
  checkShape,
);

function checkShape(made, at) {
  const names = made.features.map((feature) => feature.name);
  demand(different([...names, made.label.name]), `${at}.features: a name means two things`);
  demand(different(made.tables.map((one) => one.name)), `${at}.tables: expected no name twice`);
  demand(!made.part || (made.part.length && made.part.length <= 2 ** 20), `${at}.part: expected at most 1 MiB, and something`);
  demand(!made.given || (made.given.length && different(made.given.map((one) => one.name))), `${at}.given: expected different names`);
  made.surveys.forEach((survey, i) => {
    demand(survey.survey === i, `${at}.surveys: expected number ${i}`);
    demand(different(survey.features) && survey.features.every((name) => names.includes(name)), `${at}: survey ${i} asks other features`);
  });
  demand(made.report_size === Math.max(0, ...made.surveys.map((survey) => survey.reportSize)), `${at}.report_size: expected that of the longest report`);
  const shortest = made.surveys.map(({ window }) => window.closes - window.opens).sort((a, b) => Number(a - b))[0];
  demand(shortest === undefined || 2n * made.timetable.margin < shortest, `${at}.timetable: expected a margin below half of a window`);
  checkTexts(made, at);
  checkSlots(made, at);
}

function checkSlots(made, at) {
  demand(made.slots.length && made.slots.every((slot, i) => slot.slot === i), `${at}.slots: expected 1 to 255, by number`);
  const asked = made.slots.flatMap((slot) => slot.rows.map((row) => row.survey)).sort((a, b) => a - b);
  demand(asked.length === made.surveys.length && asked.every((survey, i) => survey === i), `${at}.slots: expected every survey in one row`);
  const inWindow = new Map();
  for (const slot of made.slots) {
    const own = new Set(slot.rows.map((row) => String([made.surveys[row.survey].window.opens, made.surveys[row.survey].window.closes])));
    for (const key of own) inWindow.set(key, (inWindow.get(key) ?? 0) + 1);
  }
  const most = Math.max(...inWindow.values());
  demand(!made.cover || made.cover.connections >= most, `${at}.cover: expected at least ${most} connections`);
}

// The manifest of a study, or a Fault. `unchecked`: rules of its design that are not recomputed here.
export function parseManifest(data) {
  const plain = decode(data);
  const made = MANIFEST(plain, "manifest");
  Object.assign(made, { data, plain });
  made.id = studyId(data);
  made.N = made.slots.length;
  made.tokenSize = tokenSize(made.N);
  demand(Object.hasOwn(PROTOCOLS, made.design), "manifest: an unknown design");
  demand(PROTOCOLS[made.design] === made.protocol, `manifest: its design is of the protocol ${PROTOCOLS[made.design]}`);
  for (const slot of made.slots) slot.round = Math.min(...slot.rows.map((row) => made.surveys[row.survey].round));
  const first = made.slots.find((slot) => made.surveys[slot.rows[0].survey].letters);
  for (const slot of made.slots) {
    const of = made.surveys[slot.rows[0].survey].letters ? first : slot;
    slot.context = contextOf(occasionOf(made.id, of.round, of.slot));
  }
  made.unchecked = [];
  made.arrangement = made.protocol === "sum" ? parseArrangement(made.part ?? new Uint8Array(0)) : null;
  made.shares = made.arrangement ? sharesOf(made.arrangement) : 0;
  return made;
}

// All that a study of histograms or sums must declare; of other protocols the parts that all studies have.
export function checkStudy(made) {
  const { timetable } = made;
  for (const { survey, window } of made.surveys) {
    const inside = timetable.settled <= window.opens && window.closes <= timetable.ends;
    demand(inside, `manifest: survey ${survey} is open outside the study's timetable`);
  }
  demand(!made.records || made.design === "trees" || made.records.most <= 10_000, "manifest: at most 10,000 records of a member");
  if (made.protocol === "histogram") checkHistogram(made);
  else if (made.protocol === "sum") checkSumDesign(made);
  else made.unchecked.push("the rules of its design: circuits, noise, lengths and cost were not recomputed");
}
