// What follows from the pages that members wrote, by protocol: when a round ends the study, and the result.
//
// A board is { pages, seats }, by round: pages as `readPage` has them, and the seat's bodies.
import { groups } from "./groups.js";
import { masks } from "./masks.js";
import { oblivious } from "./oblivious.js";
import { trees } from "./trees.js";

// Of each protocol `seats`, the rounds after which the aggregator's seat speaks; `ends(study, round, board)`, true if too
// few wrote for the study to go on after a round; and `result(study, board, given)`, as it must be published.
export const WRITTEN = { trees, masks, groups, oblivious };
