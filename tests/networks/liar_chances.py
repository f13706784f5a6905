"""The probability that a per-request liar is caught before a packet leaves, for what the peer really does.

A victim's answers come from the honest story with probability x = 1-q and from the lying one with x = q, independently
per request. Before its packet leaves the peer fetches the heads c times:

    once together with the documents that the packet rests on (roster, seed, credentials; later thresholds or edges),
    head_checks - 1 times at random instants,
    once shortly before sending,                                        so c = head_checks + 1

and keeps every chain it saw. One that goes unanswered, or is answered under another key, is fetched again.

* **manifest**. The manifest's head was kept at joining, under the pinned study id. Every lying chain contradicts it:
  caught unless all c answers are honest, 1 - (1-q)^c. (To have joined at all took two more honest answers: another
  manifest than the invite's is refused at once, and nothing was sent then either.)
* **key**. The key is pinned by the invite. Every answer under another one is seen and believed in nothing: seen unless
  the first answer to each of the c fetches is honest, 1 - (1-q)^c. No such answer can ever be followed.
* **roster, thresholds or edges**. Both stories hold by themselves. Caught when two of the answers differ. Let d be
  how many documents differ whose bodies are fetched by themselves: none for the roster, which comes with its heads, and
  1 for thresholds or edges. A body from the other story does not have its head's digest; then heads and bodies are
  fetched again. The peer gets through with story x after any number of such rounds, each of which needs the heads of x
  again:

      through(x) = sum over k >= 0 of x ((1 - x^d) x)^k x^d = x^(d+1) / (1 - x (1 - x^d))

  and c - 1 more heads must all be of x:   caught = 1 - sum over x in {q, 1-q} of through(x) x^(c-1).
  Where bodies follow the heads (`linked`; no circuit to keep apart), d = 0:   caught = 1 - q^c - (1-q)^c.
"""

from __future__ import annotations

DIFFERING = {"roster": 0, "edges": 1, "thresholds": 1}


def caught(kind: str, fetches: int, lies: float, linked: bool = False) -> float:
    """The probability for this kind of lie, so many fetches of the heads, and a share `lies` of lying answers."""
    if kind in ("manifest", "key"):
        return 1 - (1 - lies) ** fetches
    bodies = 0 if linked else DIFFERING[kind]
    return 1 - sum(through(share, bodies) * share ** (fetches - 1) for share in (lies, 1 - lies))


def through(share: float, bodies: int) -> float:
    """The probability of getting heads and `bodies` documents all of the story that has this share of answers."""
    whole = share**bodies
    return share * whole / (1 - share * (1 - whole))


def least_likely(successes: int, trials: int, probability: float) -> float:
    """The exact two-sided binomial test: the probability of an outcome no likelier than this one."""
    if probability in (0.0, 1.0):
        return float(successes == trials * probability)
    chances = [binomial(one, trials, probability) for one in range(trials + 1)]
    return min(1.0, sum(chance for chance in chances if chance <= chances[successes] * (1 + 1e-9)))


def binomial(successes: int, trials: int, probability: float) -> float:
    """The probability of exactly so many successes."""
    from math import exp, lgamma, log

    choices = lgamma(trials + 1) - lgamma(successes + 1) - lgamma(trials - successes + 1)
    return exp(choices + successes * log(probability) + (trials - successes) * log(1 - probability))
