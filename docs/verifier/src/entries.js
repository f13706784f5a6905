// Roster, credentials and transcripts of a folder, bucket by bucket: steps 6 and 7 of an audit.
import { Fault, concat, demand, hex, same } from "./bytes.js";
import * as chain from "./chain.js";
import { Issuer } from "./curve.js";
import { Findings, MOST_NAMED, counted, name } from "./findings.js";
import { checkPacket, fits, onlyScores, parsePacket, presentationOf, readPackets } from "./packets.js";

export const AT_ONCE = 2048;

// Needs the study, its chain, and the bodies by place.
export class Entries extends Findings {
  enrolled = 0;
  packets = 0;
  readable = false;
  reports = new Map();
  tags = new Map();
  digests = new Map();

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
    if (bad) this.fault(place, `${counted(bad, "token")} ${bad === 1 ? "does" : "do"} not verify`);
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
