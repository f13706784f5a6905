// A whole published folder, by the steps of docs/protocol.md, "The checks of a published study".
//
// Each fault names its document. Whatever is not checked is named; nothing that was not checked is said to hold.
import { ABSTAIN_FROM } from "./additive.js";
import { BYTES, Fault, INT, concat, demand, fields, hex, same, utf8 } from "./bytes.js";
import * as chain from "./chain.js";
import { Issuer } from "./curve.js";
import { countsBody, knownShares, parseCounts, rounds as histogramRounds, studyCuts, tallies, tally } from "./histogram.js";
import { learn, learnable } from "./learn.js";
import { checkStudy, parseManifest } from "./manifest.js";
import { difference, linearOf, parseModel, rowsOf, tablesOf } from "./models.js";
import { readPage } from "./pages.js";
import { checkPacket, fits, onlyScores, parsePacket, presentationOf, readPackets } from "./packets.js";
import { beyondReason, resultsOf } from "./summed.js";
import { checkCountersignatures, checkSums, parseEnd } from "./sums.js";

const CLOSING = ["roster", "seed", "credentials"];
const BUCKETED = ["roster", "credentials", "transcript"];
const AT_ONCE = 2048;
const MOST_NAMED = 10;
const NOBODY = [
  "whether packets were left out: each member's program looks for its own in the transcripts",
  "whether members of the roster were invented: each counts as one",
  "when packets came",
];
const name = ([kind, part]) => `${kind} ${part}`;
const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

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

class Audit {
  constructor(folder, progress) {
    Object.assign(this, { folder, progress, holds: [], faults: [], unchecked: [], bodies: new Map(), places: [], enrolled: 0, packets: 0 });
    Object.assign(this, { reports: new Map(), tags: new Map(), digests: new Map(), readable: false, ended: null, summed: [], nobody: [...NOBODY] });
  }

  result() {
    const { holds, faults, unchecked, nobody, study, enrolled, packets, chain: heads } = this;
    const words = study ? chain.studyWords(study.id) : "";
    const prints = (heads ?? []).map((head) => ({ number: head.number, document: name([head.kind, head.part]), words: chain.headWords(head) }));
    return { words, id: study ? hex(study.id) : "", title: study?.title ?? "", key: study ? hex(study.aggregator_key) : "", prints, enrolled, packets, holds, faults, unchecked, nobody };
  }

  fault(document, why) {
    this.faults.push({ document, why });
  }

  hold(said) {
    this.holds.push(said);
  }

  skip(document, why) {
    this.unchecked.push({ document, why });
  }

  // True if the work raised nothing: a Fault becomes one of the document, and the audit goes on.
  noting(document, work) {
    try {
      work();
      return true;
    } catch (error) {
      this.fault(document, error instanceof Fault ? error.message : "cannot be read with the documents there are");
      return false;
    }
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
    await this.others();
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

  // The documents of rounds, where this page knows them; null where the protocol has pages and seats.
  roundPlaces() {
    if (this.study.protocol === "histogram") return histogramRounds(this.study).map((round) => round.document);
    return this.study.protocol === "sum" ? this.study.surveys.map((survey) => ["sums", survey.survey]) : null;
  }

  order() {
    const before = this.faults.length;
    const rounds = this.roundPlaces();
    if (rounds === null) return this.otherOrder();
    const results = this.results();
    const closing = [["roster", 0], ["seed", 0], ["credentials", 0]];
    const first = [["manifest", 0], ...(this.study.arrangement ? [["tellers", 0]] : []), ...(this.study.given ?? []).map((_, i) => ["given", i])];
    const after = [...(this.study.arrangement ? [["unsummed", 0]] : []), ...this.study.slots.map((slot) => ["transcript", slot.slot]), ["seed", 1], ...results, ["report", 0]];
    this.outOfOrder(first, [...first, ...closing, ...rounds, ...after]);
    this.missing(rounds, results);
    this.leftOut([...results, ["report", 0]]);
    const known = new Set([...first, ["abandoned", 0], ...closing, ...rounds, ...after].map(name));
    for (const place of this.places) if (!known.has(name(place))) this.fault(name(place), "no such document belongs to the study");
    if (this.faults.length === before) this.hold("the documents come in their order, and each has what it rests on");
  }

  // Of a protocol whose rounds this page does not know: nothing of their documents is checked.
  otherOrder() {
    this.skip("heads", "the order of documents of this protocol was not checked");
    const known = ["manifest", "given", "page", "abandoned", "unsummed", "model", "report", ...CLOSING, "transcript"];
    for (const [kind, part] of this.places) if (!known.includes(kind)) this.skip(name([kind, part]), "its content was not checked");
  }

  results() {
    const named = { marginals: ["model", "rows"], trees: ["rows"] }[this.study.design] ?? ["model"];
    return named.map((kind) => [kind, 0]);
  }

  outOfOrder(first, expected) {
    const initial = new Set(first.map(name));
    const rest = this.places.map(name).filter((place) => !initial.has(place));
    if (rest.length === 1 && rest[0] === "abandoned 0") return;
    const all = expected.map(name);
    let next = 0;
    for (const place of this.places.map(name)) {
      if (!all.includes(place)) continue;
      const found = all.indexOf(place, next);
      if (found < 0) return this.fault(place, "published out of order");
      next = found + 1;
    }
  }

  missing(rounds, results) {
    const kinds = new Set(this.places.map(([kind]) => kind));
    const rests = { unsummed: CLOSING, transcript: CLOSING, report: [...CLOSING, "transcript"] };
    results.forEach(([kind]) => (rests[kind] = [...CLOSING, "transcript"]));
    const needed = new Set(rounds.some(([kind]) => kinds.has(kind)) ? CLOSING : []);
    for (const kind of kinds) for (const below of rests[kind] ?? []) needed.add(below);
    for (const kind of needed) if (!kinds.has(kind)) this.fault(kind, "was never published, but what rests on it was");
  }

  leftOut(ordered) {
    const there = new Set(this.places.map(name));
    const last = ordered.map(name).findLastIndex((place) => there.has(place));
    for (const place of ordered.slice(0, Math.max(last, 0)).map(name)) {
      if (!there.has(place)) this.fault(place, "was never published, but what rests on it was");
    }
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
    const rounds = this.roundPlaces();
    if (rounds === null) return this.skip("unsummed 0", "whether this round could have been opened was not checked");
    const there = new Set(this.places.map(name));
    demand(ended.round < rounds.length, `names round ${ended.round}, and the study has ${rounds.length}`);
    const after = ["seed 1", "model 0", "report 0", ...this.results().map(name), ...this.study.slots.map((slot) => `transcript ${slot.slot}`)];
    const later = [...after, ...rounds.slice(ended.round).map(name)].find((place) => there.has(place));
    if (later) this.fault("unsummed 0", `says that round ${ended.round} has no sum, and there is ${later}`);
    const earlier = rounds.slice(0, ended.round).map(name).find((place) => !there.has(place));
    if (earlier) this.fault("unsummed 0", `says that round ${ended.round} has no sum, and ${earlier} was never published`);
    if (!later && !earlier) this.hold(`the study ended without a sum of round ${ended.round} (${ended.why}), and nothing of it is published`);
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

  document(kind, part = 0) {
    const found = chain.parseDocument(this.bodies.get(name([kind, part])), this.study.id, kind, part);
    demand(found.count <= this.study.cohort.maximum, `signed for ${found.count} entries, more than the manifest allows`);
    return found;
  }

  content(kind, part, bucket) {
    const head = this.chain.find((one) => one.kind === kind && one.part === part);
    return this.folder.read(`contents/${head.number}/${bucket}`);
  }

  // Step by step over the buckets of a document: what each gives, the faults, and the root at the end.
  async buckets(document, work) {
    const [leaves, found, missing] = [[], [], []];
    let entries = 0;
    for (let bucket = 0; bucket < document.buckets; bucket++) {
      const content = await this.content(document.kind, document.part, bucket);
      if (!content) {
        missing.push(bucket);
        continue;
      }
      try {
        leaves.push(chain.leafHash(chain.hashedBody(document, content)));
        entries += work(bucket, content);
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        found.push(`bucket ${bucket}: ${error.message}`);
      }
    }
    const faults = found.slice(0, MOST_NAMED);
    if (found.length > MOST_NAMED) faults.push(`${found.length - MOST_NAMED} further faults of its buckets`);
    if (missing.length) faults.push(`${missing.length} of ${counted(document.buckets, "bucket")} missing: ${missing.slice(0, MOST_NAMED).join(", ")}`);
    if (leaves.length === document.buckets && !same(chain.rootOf(leaves), document.root)) faults.push("its buckets are not those of the signed root");
    if (document.kind !== "credentials" && !faults.length && entries !== document.count) faults.push(`signed for ${document.count} entries, and its buckets have ${entries}`);
    faults.forEach((why) => this.fault(name([document.kind, document.part]), why));
    return { entries, good: faults.length === 0 };
  }

  async members() {
    try {
      const document = this.document("roster");
      this.enrolled = document.count;
      const { minimum, maximum } = this.study.cohort;
      if (document.count < minimum || document.count > maximum) this.fault("roster 0", "fewer or more entries than the manifest allows");
      if (this.bodies.has("credentials 0") && this.bodies.has("seed 0")) await this.closing(document);
      else await this.buckets(document, (bucket, content) => chain.readRoster(document, bucket, content).length);
    } catch (error) {
      this.fault("roster 0", error instanceof Fault ? error.message : "cannot be read with the documents there are");
    }
  }

  async closing(roster) {
    const { id, data, seed_commitment: committed, credential_key: key, N } = this.study;
    const value = chain.parseSeed(this.bodies.get("seed 0"), id, committed);
    const credentials = this.document("credentials");
    demand(credentials.count === roster.count, `credentials: expected ${roster.count} for this study, got ${credentials.count}`);
    const seed = chain.studySeed(data, this.bodies.get("roster 0"), value);
    this.issuer = new Issuer(key, concat(id, chain.bodyDigest(this.bodies.get("roster 0"))), N);
    const members = new Map();
    const shut = [];
    const batch = new Batch((items) => this.issuer.credentials(items), (items, works) => {
      items.forEach(({ bucket, place }, i) => works[i] || shut.push([bucket, place]));
      this.progress({ what: "credentials", done: (this.credentials = (this.credentials ?? 0) + items.length), of: credentials.count });
    });
    const entries = await this.buckets(roster, (bucket, content) => {
      members.set(bucket, chain.readRoster(roster, bucket, content));
      return members.get(bucket).length;
    });
    const good = await this.buckets(credentials, (bucket, content) => {
      const own = members.get(bucket);
      if (!own) return 0;
      const issued = chain.readCredentials(id, content, own.length);
      own.forEach((entry, place) => {
        batch.add({ bucket, place, commitment: entry.point, signature: issued[place], entropy: this.issuer.entropy(seed, entry.key) });
      });
      return own.length;
    });
    batch.end();
    const named = shut.slice(0, MOST_NAMED).map(([bucket, place]) => `${place} of bucket ${bucket}`).join(", ");
    if (shut.length) this.fault("credentials 0", `${counted(shut.length, "credential")} that no holder can use, the first of entry ${named}: these members were shut out`);
    if (entries.good) this.hold(`the roster's ${counted(roster.count, "entry", "entries")} are those under its signed root`);
    if (entries.good && good.good && !shut.length) this.hold(`each of the ${counted(roster.count, "member")} was given a credential that works: nobody was shut out`);
  }

  async transcripts() {
    const parts = this.places.filter(([kind, part]) => kind === "transcript" && this.bodies.has(name([kind, part]))).map(([, part]) => part);
    const unique = [...new Set(parts)];
    if (!unique.length) return;
    const { id, data, seed_commitment: committed, slots, credential_key: key, N } = this.study;
    let seed = null;
    const known = () => {
      demand(this.bodies.has("seed 0"), "cannot be read with the documents there are");
      seed = chain.studySeed(data, this.bodies.get("roster 0"), chain.parseSeed(this.bodies.get("seed 0"), id, committed));
    };
    if (!this.noting("seed 0", known)) return;
    this.issuer ??= new Issuer(key, concat(id, chain.bodyDigest(this.bodies.get("roster 0"))), N);
    this.readable = true;
    const documents = [];
    for (const part of unique) this.noting(`transcript ${part}`, () => documents.push(this.document("transcript", part)));
    const total = documents.reduce((all, one) => all + one.count, 0);
    let sound = documents.length === unique.length;
    for (const document of documents) sound = (await this.slot(document, seed, total)) && sound;
    if (unique.sort((a, b) => a - b).join() !== slots.map((slot) => slot.slot).join()) {
      this.fault("transcript", "not every slot has one");
      sound = false;
    }
    if (sound) this.hold(`each of the ${counted(this.packets, "packet")} has a token of a member of this roster, answers the survey that its tag draws, and counts once`);
  }

  async slot(document, seed, total) {
    const place = `transcript ${document.part}`;
    const refused = new Map();
    let bad = 0;
    const batch = new Batch((items) => this.issuer.tokens(items), (items, holds) => {
      bad += holds.filter((one) => !one).length;
      this.packets += items.length;
      this.progress({ what: "packets", done: this.packets, of: total });
    });
    const found = await this.buckets(document, (bucket, content) => {
      this.count(document, content);
      const packets = readPackets(document, bucket, content);
      if (packets.some((packet) => this.unreadable(packet))) throw new Fault("a packet that cannot be read");
      if (this.study.slots[document.part]?.rows.some((row) => this.study.surveys[row.survey].written)) {
        const own = chain.readTranscript(content, this.study.id).packets.map((plaintext) => hex(chain.packetDigest(plaintext)));
        this.digests.set(document.part, [...(this.digests.get(document.part) ?? []), ...own]);
      }
      for (const packet of packets) {
        if (!this.tags.has(packet.survey)) this.tags.set(packet.survey, []);
        this.tags.get(packet.survey).push(packet.tag);
        const word = this.refusal(packet, seed);
        if (word) refused.set(word, (refused.get(word) ?? 0) + 1);
      }
      for (const packet of packets) {
        batch.add({ token: packet.token, context: this.study.slots[packet.slot].context, presentation: presentationOf(packet) });
      }
      return packets.length;
    });
    batch.end();
    for (const [word, number] of refused) this.fault(place, `a packet is not acceptable: ${word} (${number} in all)`);
    if (bad) this.fault(place, `${counted(bad, "token")} do not verify`);
    const most = Math.max(document.count, found.entries);
    if (most > this.enrolled) this.fault("transcript", `slot ${document.part} has ${most} packets, and the signed roster ${this.enrolled} members: the others are invented`);
    return found.good && !refused.size && !bad && most <= this.enrolled;
  }

  unreadable(packet) {
    const slot = this.study.slots[packet.slot];
    const lengths = packet.token.length === this.study.tokenSize && packet.digests.length === this.study.shares;
    return !same(packet.study, this.study.id) || !lengths || !slot || packet.round !== slot.round || !this.study.surveys[packet.survey];
  }

  refusal(packet, seed) {
    try {
      checkPacket(this.study, packet, seed);
      return "";
    } catch (error) {
      if (error instanceof Fault) return error.message;
      throw error;
    }
  }

  // What can be counted in a bucket, whatever else is wrong with it: reports by survey, of those that train and that score.
  count(document, content) {
    const value = this.scoreValue();
    for (const plaintext of chain.readTranscript(content, this.study.id).packets) {
      const packet = this.counts(plaintext);
      if (!packet) continue;
      const rows = this.reports.get(packet.survey) ?? [[], []];
      rows[onlyScores(value, packet.tag, this.study.learning.score_share) ? 1 : 0].push(packet.report);
      this.reports.set(packet.survey, rows);
    }
  }

  counts(plaintext) {
    try {
      const packet = parsePacket(plaintext);
      const survey = this.study.surveys[packet.survey];
      return survey && fits(survey, packet.report) ? packet : null;
    } catch (error) {
      if (error instanceof Fault) return null;
      throw error;
    }
  }

  scoreValue() {
    if (this.value === undefined) {
      this.value = new Uint8Array(0);
      try {
        const first = chain.parseSeed(this.bodies.get("seed 0"), this.study.id, this.study.seed_commitment);
        this.value = chain.parseSeed(this.bodies.get("seed 1"), this.study.id, first);
      } catch {
        // The model's check says so.
      }
    }
    return this.value;
  }

  // Packets, tokens and lengths of the pages that members wrote. The protocol's own use of them is not asked.
  pages() {
    const { study } = this;
    if (!study.surveys.some((survey) => survey.written)) return;
    for (const [kind, part] of this.places) if (kind === "page" && this.bodies.has(name([kind, part]))) this.noting(`page ${part}`, () => this.page(part));
    this.skip("pages", "whether enough members wrote for the study to go on was not checked: it hangs on the protocol");
  }

  page(part) {
    const { study } = this;
    const packets = readPage(study, part, this.bodies.get(`page ${part}`));
    for (const { survey } of study.surveys.filter((one) => one.written && one.round === part)) {
      const own = packets.filter((packet) => packet.survey === survey);
      demand(own.length <= this.enrolled, `${own.length} wrote, and the roster has ${this.enrolled} members`);
      const { slot } = study.slots.find((one) => one.rows[0].survey === survey);
      const digests = own.map((packet) => hex(chain.packetDigest(packet.plaintext))).sort().join();
      demand(!this.readable || digests === (this.digests.get(slot) ?? []).sort().join(), "has other packets than the transcripts");
    }
    const { credential_key: key, N, id } = study;
    this.issuer ??= new Issuer(key, concat(id, chain.bodyDigest(this.bodies.get("roster 0"))), N);
    const shown = packets.map((packet) => ({ token: packet.token, context: study.slots[packet.slot].context, presentation: presentationOf(packet) }));
    for (let at = 0; at < shown.length; at += AT_ONCE) demand(this.issuer.tokens(shown.slice(at, at + AT_ONCE)).every(Boolean), "a token does not verify");
    this.hold(`page ${part}: ${counted(packets.length, "packet")} of members, each at its place with a token that holds${this.readable ? ", as in the transcripts" : ""}`);
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
    const places = this.results().map(name).filter((place) => this.bodies.has(place));
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
    else this.skip(place, `a result of the protocol ${this.study.protocol} was not recomputed`);
  }

  tables(place, { form, model, plain }) {
    demand(form === "tables", "is of another form than its protocol's");
    const answers = this.answers();
    if (!learnable(this.study)) return this.skip(place, "its tables, chance and base rate were not recomputed: a survey has so many cells that it would take minutes here");
    demand(this.readable, "the transcripts cannot be counted");
    const { classifier } = this.study.learning;
    const repeated = ["soft", "additive"].includes(classifier);
    const found = learn(this.study, tallies(this.study, this.reports), knownShares(this.study, answers), model.tables.map((one) => one.log_odds));
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
    this.found ??= resultsOf(study, this.summed, this.bodies.get("given 0"));
    const { tables, linear, rows } = this.found;
    const cuts = new Map(study.features.map((one) => [one.name, one.cuts]));
    const expected = place === "rows 0" ? rowsOf(study, rows) : tables ? tablesOf(study, tables, cuts) : linearOf(study, linear);
    this.isWhat(place, plain, expected, "the published sums give");
  }

  isWhat(place, plain, expected, source) {
    const wrong = difference(plain, expected);
    demand(wrong === null, `is not what the documents give: its ${wrong} differs`);
    this.hold(`${place} is what ${source}, to a millionth of each number`);
    if (expected.chance === null) this.nobody.push("how often noise alone would give such a model: a linear model says no chance");
    else if (expected.chance !== undefined) this.hold(`${place}: noise alone would count as much in ${Number((100 * expected.chance).toPrecision(2))} % of such studies, as it says`);
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

  // Files beside the documents: copies must be the same bytes, and every other is named.
  async others() {
    const copies = new Map([["fingerprints.txt", utf8(chain.fingerprints(this.study.id, this.chain))]]);
    for (const [file, place] of [["report.html", "report 0"], ...this.results().map(([kind, part]) => [part ? `${kind}-${part}.json` : `${kind}.json`, name([kind, part])])]) {
      const head = this.chain.find((one) => name([one.kind, one.part]) === place);
      copies.set(file, (head && (await this.folder.read(`documents/${head.number}`))) || null);
      if (place === "rows 0" && copies.get(file)) copies.set("rows.csv", csvOf(copies.get(file)));
    }
    const known = new Set(["heads", ...this.chain.map((head) => `documents/${head.number}`)]);
    for (const head of this.chain.filter((one) => BUCKETED.includes(one.kind))) {
      const body = await this.folder.read(`documents/${head.number}`);
      try {
        const { buckets } = chain.parseDocument(body, this.study.id, head.kind, head.part);
        for (let bucket = 0; bucket < buckets; bucket++) known.add(`contents/${head.number}/${bucket}`);
      } catch {
        // A fault of the document, which stands above.
      }
    }
    for (const file of this.folder.names) {
      if (copies.has(file)) {
        const there = await this.folder.read(file);
        if (!copies.get(file) || !same(there, copies.get(file))) this.fault(file, "is not what was signed; do not open it, and export the study again");
      } else if (!known.has(file)) this.skip(file, "it belongs to no document");
    }
  }
}

// Rows as comma-separated values without formulas, or nothing for a document that has none.
const computed = (text) => /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) && !/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(text);
function csvOf(body) {
  try {
    const { model } = parseModel(new TextDecoder().decode(body));
    const spelled = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const plain = (text) => (computed(text) ? `'${text}` : text);
    return utf8([model.columns, ...model.rows].map((row) => `${row.map((text) => spelled(plain(text))).join(",")}\n`).join(""));
  } catch (error) {
    if (error instanceof Fault) return null;
    throw error;
  }
}

// Work in batches over the buckets of a document.
class Batch {
  constructor(work, take) {
    Object.assign(this, { work, take, items: [] });
  }

  add(item) {
    this.items.push(item);
    if (this.items.length === AT_ONCE) this.end();
  }

  end() {
    if (this.items.length) this.take(this.items, this.work(this.items));
    this.items = [];
  }
}
