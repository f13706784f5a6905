// What an audit found: each fault and each thing that was not checked with its document, and what holds.
import { Fault } from "./bytes.js";

export const MOST_NAMED = 10;
export const name = ([kind, part]) => `${kind} ${part}`;
export const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

export class Findings {
  holds = [];
  faults = [];
  unchecked = [];

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
}
