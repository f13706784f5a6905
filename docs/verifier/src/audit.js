// A whole published folder, by the steps of docs/protocol.md, "The checks of a published study".
//
// Each fault names its document. Whatever is not checked is named; nothing that was not checked is said to hold.
import { ABSTAIN_FROM } from "./additive.js";
import { BYTES, Fault, INT, concat, demand, fields, hex, same, utf8 } from "./bytes.js";
import * as chain from "./chain.js";
import { Issuer } from "./curve.js";
import { AT_ONCE, Entries } from "./entries.js";
import { counted, name } from "./findings.js";
import { countsBody, knownShares, parseCounts, rounds as histogramRounds, studyCuts, tallies, tally } from "./histogram.js";
import { learn, learnable } from "./learn.js";
import { checkStudy, parseManifest } from "./manifest.js";
import { difference, linearOf, parseModel, rowsOf, tablesOf } from "./models.js";
import { endingFaults, orderFaults, resultsOf } from "./order.js";
import { checkOthers } from "./others.js";
import { readPage } from "./pages.js";
import { presentationOf } from "./packets.js";
import { beyondReason, resultsOf as resultsOfSums } from "./summed.js";
import { checkCountersignatures, checkSums, parseEnd } from "./sums.js";
import { WRITTEN } from "./written.js";

const NOBODY = [
  "whether packets were left out: each member's program looks for its own in the transcripts",
  "whether members of the roster were invented: each counts as one",
  "when packets came",
];

// `folder`: { names, read(name) } of a published study. Resolves to { words, title, holds, faults, unchecked, nobody }.
export async function audit(folder, progress = () => {}) {
  const made = new Audit(folder, progress);
  try {
    await made.run();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    made.fault("folder", `${error.message}; nothing more can be checked`);
  }
  return made.result();
}

const percent = (chance) => (chance < 1e-6 ? "fewer than one in a million" : `${Number((100 * chance).toPrecision(2))} %`);

class Audit extends Entries {
  bodies = new Map();
  places = [];
  board = { pages: new Map(), seats: new Map() };
  summed = [];
  nobody = [...NOBODY];
  ended = null;

  constructor(folder, progress) {
    super();
    Object.assign(this, { folder, progress });
  }

  result() {
    const { holds, faults, unchecked, nobody, study, enrolled, packets, chain: heads } = this;
    const words = study ? chain.studyWords(study.id) : "";
    const prints = (heads ?? []).map((head) => ({ number: head.number, document: name([head.kind, head.part]), words: chain.headWords(head) }));
    return { words, id: study ? hex(study.id) : "", title: study?.title ?? "", key: study ? hex(study.aggregator_key) : "", prints, enrolled, packets, holds, faults, unchecked, nobody };
  }

  async run() {
    await this.open();
    await this.take();
    this.order();
    if (this.noting("manifest", () => checkStudy(this.study))) this.manifestHolds();
    this.tellers();
    this.abandoned();
    if (this.bodies.has("roster 0")) {
      await this.members();
      await this.transcripts();
      this.pages();
      this.rounds();
    }
    this.model();
    this.report();
    await checkOthers(this, this);
  }

  async open() {
    const manifest = await this.folder.read("documents/0");
    demand(manifest, "document 0, the manifest, is missing");
    const heads = await this.folder.read("heads");
    demand(heads, "the heads are missing");
    this.study = parseManifest(manifest);
    this.chain = chain.parseChain(heads, this.study.aggregator_key, this.study.id);
    this.hold(`${counted(this.chain.length, "signed head")}: each is signed by the study's key, and names the one before`);
  }

  async take() {
    const before = this.faults.length;
    for (const head of this.chain) {
      const place = name([head.kind, head.part]);
      this.places.push([head.kind, head.part]);
      const body = await this.folder.read(`documents/${head.number}`);
      if (this.bodies.has(place)) this.fault(place, "published twice");
      else if (!body) this.fault(place, "its body is missing; fetch it, or it was erased when the retention ended");
      else if (head.kind === "given" && !same(this.study.given?.[head.part]?.digest ?? utf8(""), head.digest)) this.fault(place, "is another document than the manifest names");
      else if (body.length !== head.length || !same(chain.bodyDigest(body), head.digest)) this.fault(place, "the body does not match its signed head");
      else this.bodies.set(place, body);
    }
    if (this.faults.length === before) this.hold("every document has the length and the digest of its signed head");
  }

  manifestHolds() {
    const { protocol, surveys, unchecked } = this.study;
    const cost = protocol === "histogram" ? ", and declares at least the epsilon that its surveys cost" : protocol === "sum" ? ", and declares the rho that its sums cost, with circuits and noise that fit" : "";
    this.hold(`the manifest has its one form, with ${counted(surveys.length, "survey")}${cost}`);
    unchecked.forEach((why) => this.skip("manifest", why));
  }

  order() {
    const faults = orderFaults(this.study, this.places);
    faults.forEach(([place, why]) => this.fault(place, why));
    if (!faults.length) this.hold("the documents come in their order, and each has what it rests on");
  }

  tellers() {
    const { arrangement, surveys, id } = this.study;
    const ending = this.bodies.get("unsummed 0");
    if (ending) this.noting("unsummed 0", () => this.ending(parseEnd(ending, id, arrangement)));
    if (arrangement) {
      const countersigned = () => {
        demand(this.bodies.has("tellers 0"), "cannot be read with the documents there are");
        checkCountersignatures(this.bodies.get("tellers 0"), id, arrangement);
      };
      if (this.noting("tellers 0", countersigned)) this.hold(`all ${arrangement.tellers.length} tellers countersigned exactly this study`);
      this.nobody.push("whether a teller added up what it was sent, and added the noise that it should have");
    } else if (surveys.some((survey) => survey.letters)) this.nobody.push("what members wrote to each other: letters are sealed");
  }

  ending(ended) {
    this.ended = ended;
    const faults = endingFaults(this.study, ended.round, this.places);
    faults.forEach((why) => this.fault("unsummed 0", why));
    if (!faults.length) this.hold(`the study ended without a sum of round ${ended.round} (${ended.why}), and nothing of it is published`);
  }

  abandoned() {
    const body = this.bodies.get("abandoned 0");
    if (!body) return;
    this.noting("abandoned 0", () => {
      const [version, named, enrolled] = fields(body, [INT, BYTES, INT], "abandoned");
      const right = version === 1n && same(named, this.study.id) && enrolled >= 0n && enrolled < 1n << 32n;
      demand(right, "abandoned: for another study or version, or an impossible number");
      demand(enrolled < BigInt(this.study.cohort.minimum), `for too few members, and ${enrolled} enrolled, which is enough`);
      this.hold(`the study was abandoned: ${enrolled} enrolled, fewer than its minimum`);
    });
  }

  // Pages of members: packets, tokens and lengths, and whether so much was written that the study goes on.
  pages() {
    const written = WRITTEN[this.study.protocol];
    const rounds = this.places.filter((place) => place[0] === "page" && this.bodies.has(name(place))).map(([, part]) => part);
    if (!written || !rounds.length) return;
    const before = this.faults.length;
    for (const round of rounds) {
      this.noting(name(["page", round]), () => this.page(round));
      this.noting(name(["page", round]), () => this.goesOn(written, round, Math.max(...rounds)));
    }
    for (const round of written.seats) if (this.bodies.has(name(["seat", round]))) this.seat(written, round);
    if (this.faults.length === before) this.hold("each round has what lets the study go on, or end, as it did");
  }

  page(part) {
    const { study } = this;
    const page = readPage(study, part, this.bodies.get(`page ${part}`));
    const { packets } = page;
    this.board.pages.set(part, page);
    for (const { survey } of study.surveys.filter((one) => one.written && one.round === part)) {
      const own = packets.filter((packet) => packet.survey === survey);
      demand(own.length <= this.enrolled, `${own.length} wrote, and the roster has ${this.enrolled} members`);
      const { slot } = study.slots.find((one) => one.rows[0].survey === survey);
      const digests = own.map((packet) => hex(packet.digest)).sort().join();
      demand(!this.readable || digests === (this.digests.get(slot) ?? []).sort().join(), "has other packets than the transcripts");
    }
    const { credential_key: key, N, id } = study;
    this.issuer ??= new Issuer(key, concat(id, chain.bodyDigest(this.bodies.get("roster 0"))), N);
    const shown = packets.map((packet) => ({ token: packet.token, context: study.slots[packet.slot].context, presentation: presentationOf(packet) }));
    for (let at = 0; at < shown.length; at += AT_ONCE) demand(this.issuer.tokens(shown.slice(at, at + AT_ONCE)).every(Boolean), "a token does not verify");
    this.hold(`page ${part}: ${counted(packets.length, "packet")} of members, each at its place with a token that holds${this.readable ? ", as in the transcripts" : ""}`);
  }

  goesOn(written, round, last) {
    const seat = this.bodies.get(name(["seat", round]));
    if (seat) this.board.seats.set(round, seat);
    const ends = written.ends(this.study, round, this.board);
    const ended = round === last && this.ended !== null;
    demand(ends === ended, ends ? "too few wrote, and the study went on" : "enough wrote, and the study ended");
  }

  seat(written, round) {
    const place = name(["seat", round]);
    this.skip(place, "the aggregator made it from secrets of its own; nobody can make it again");
    this.noting(place, () => {
      const longest = written.longestSeat(this.study, round);
      demand(this.bodies.get(place).length <= longest, `expected at most ${longest} bytes`);
    });
  }

  rounds() {
    const { protocol } = this.study;
    if (protocol === "histogram") histogramRounds(this.study).forEach((round) => this.countedRound(round));
    if (protocol === "sum") this.study.surveys.forEach((survey) => this.summedRound(survey.survey));
  }

  countedRound(round) {
    const place = name(round.document);
    const body = this.bodies.get(place);
    if (!this.readable) {
      if (body) this.skip(place, "its packets are published when collection is over");
      return;
    }
    const tallies = new Map(round.surveys.map((survey) => [survey.survey, tally(survey, (this.reports.get(survey.survey) ?? [[], []]).flat())]));
    if (body && same(body, countsBody(this.study, round, tallies))) this.hold(`the counts of ${place} are those of its packets`);
    else this.fault(place, "its counts are not those of the transcripts");
  }

  summedRound(number) {
    const place = `sums ${number}`;
    const body = this.bodies.get(place);
    if (!this.readable && !body) return;
    if (!this.readable) this.skip(place, "its packets are published when collection is over");
    this.noting(place, () => {
      demand(body, "cannot be read with the documents there are");
      const { id, arrangement } = this.study;
      const [found] = checkSums(id, arrangement, number, body, this.enrolled, this.readable ? this.tags.get(number) ?? [] : null);
      const { noise: [up, down] } = arrangement.sums[number];
      this.summed[number] = { ...found, noise: [up * BigInt(arrangement.spare ? 2 : arrangement.tellers.length), down] };
      this.hold(`${place}: every teller signed the one list of ${counted(found.summed, "vector")}, and their shares make the sum`);
      if (found.leftOut) this.skip(place, `${counted(found.leftOut, "packet")} of its transcript ${found.leftOut === 1 ? "is" : "are"} not in the sum; a teller refused them, or the aggregator left them out`);
    });
  }

  model() {
    const places = resultsOf(this.study).map(name).filter((place) => this.bodies.has(place));
    if (!places.length && !this.bodies.has("report 0")) return;
    this.noting("model", () => {
      const { id, seed_commitment: committed } = this.study;
      demand(this.bodies.has("seed 0") && this.bodies.has("seed 1"), "cannot be read with the documents there are");
      chain.parseSeed(this.bodies.get("seed 1"), id, chain.parseSeed(this.bodies.get("seed 0"), id, committed));
      demand(this.readable, "the transcripts cannot be counted");
    });
    this.progress({ what: "results", done: 0, of: places.length });
    for (const place of places) this.noting(place, () => this.modelBody(place));
  }

  modelBody(place) {
    const read = parseModel(new TextDecoder("utf-8", { fatal: true }).decode(this.bodies.get(place)));
    this.hold(`${place} has its one spelling and form`);
    if (this.study.protocol === "histogram") this.tables(place, read);
    else if (this.study.protocol === "sum") this.ofSums(place, read);
    else this.isWhat(place, read.plain, (this.found ??= WRITTEN[this.study.protocol].result(this.study, this.board, this.bodies.get("given 0"))), "the pages give");
  }

  tables(place, { form, model, plain }) {
    demand(form === "tables", "is of another form than its protocol's");
    const answers = this.answers();
    if (!learnable(this.study)) return this.skip(place, "its tables, chance and base rate were not recomputed: a survey has so many cells that it would take minutes here");
    demand(this.readable, "the transcripts cannot be counted");
    const { classifier } = this.study.learning;
    const found = learn(this.study, tallies(this.study, this.reports), knownShares(this.study, answers), model.tables.map((one) => one.log_odds));
    const repeated = found.belief || ["soft", "additive"].includes(classifier);
    // Silent tables of a classifier that is not repeated have no log-odds here to score by.
    if (!repeated && found.chance > ABSTAIN_FROM) found.tables.forEach((one, i) => Object.assign(one, { f1: model.tables[i]?.f1, auc: model.tables[i]?.auc }));
    this.isWhat(place, plain, tablesOf(this.study, found, studyCuts(this.study, answers)), `the packets give${repeated ? "" : ", but for its log-odds"}`);
    if (!repeated) this.skip(place, `its log-odds were not recomputed: they are of the classifier ${classifier}`);
  }

  ofSums(place, { plain }) {
    const { study } = this;
    demand(study.surveys.every((_, i) => this.summed[i]), "its sums cannot be read");
    const strange = beyondReason(study, this.summed[0]);
    if (strange) return this.skip(place, strange);
    this.found ??= resultsOfSums(study, this.summed, this.bodies.get("given 0"));
    const { tables, linear, rows } = this.found;
    const cuts = new Map(study.features.map((one) => [one.name, one.cuts]));
    const expected = place === "rows 0" ? rowsOf(study, rows) : tables ? tablesOf(study, tables, cuts) : linearOf(study, linear);
    this.isWhat(place, plain, expected, "the published sums give");
  }

  isWhat(place, plain, expected, source) {
    const wrong = difference(plain, expected);
    demand(wrong === null, `is not what the documents give: its ${wrong} differs`);
    this.hold(`${place} is what ${source}, to a millionth of each number`);
    if (expected.chance === null) this.nobody.push("how often noise alone would give such a model: it says no chance");
    else if (expected.chance !== undefined) this.hold(`${place}: noise alone would count as much in ${percent(expected.chance)} of such studies, as it says`);
  }

  answers() {
    const answers = new Map();
    for (const { document } of histogramRounds(this.study)) {
      const body = this.bodies.get(name(document));
      demand(body, `${name(document)}: not among the documents`);
      for (const [survey, told] of parseCounts(this.study, document, body)) answers.set(survey, told);
    }
    return answers;
  }

  report() {
    if (this.bodies.has("report 0")) this.skip("report.html", "the page for people is not made again here; its figures should be those of the other documents");
  }
}
