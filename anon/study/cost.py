"""How much a study costs, in nano-epsilon (1e-9): the sum over slots, and the paper's eq. 6.

1. A survey costs what its mechanism's integer probabilities allow, rounded up (`anon.ldp`). It declares that as
   `epsilon`, and `anon.study.manifest.Survey` cannot be built with less.
2. A slot costs its dearest row, since a peer answers one row of it.
3. A study costs the sum over its slots (`total_epsilon`). Publishing writes it into the manifest (`Manifest.epsilon` in
   `anon.study.manifest`), by way of the protocol's `exposure` (`anon.protocols.resolve`).
4. `anon.protocols.registry.check_study` refuses a manifest that declares less than its surveys cost. Staff's program,
   every peer and the audit call it.
5. The owner's ledger reserves the declared cost, and spends each packet's own (`peer.rules.ledger`).

The amount is epsilon where the protocol's promise is local. Other protocols declare rho or a central epsilon in its
place. `anon.protocols.charge` has the measures, units, neighbours and conditions. `charge_of` in
`anon.protocols.registry` is a study's charge.

`anon.ldp.composition` adds up. `anon.accounting` states the cost after anonymous delivery, which depends on others and
enters no budget.
"""

from __future__ import annotations

from collections.abc import Callable

from anon.ldp import SurveyCost, per_attribute, record_level
from anon.study.manifest import Survey
from anon.study.slots import Slot


def total_epsilon(surveys: tuple[Survey, ...], slots: tuple[Slot, ...]) -> int:
    """Record-level epsilon in 1e-9: the dearest row of every slot, summed (design section 4)."""
    return record_level([[surveys[row.survey].epsilon for row in slot.rows] for slot in slots])


def attribute_epsilon(
    surveys: tuple[Survey, ...], slots: tuple[Slot, ...], tells_of_label: Callable[[Survey], bool]
) -> int:
    """The paper's eq. 6 in 1e-9, shown only as "per-attribute (AnonML eq. 6)", never as the guarantee.

    A survey names its features. The protocol's shared part says by `tells_of_label` which answers tell something of
    the label too, since the kinds of surveys are the protocol's own.
    """

    def cost(survey: Survey) -> SurveyCost:
        return SurveyCost(survey.features, tells_of_label(survey), survey.epsilon)

    return per_attribute([[cost(surveys[row.survey]) for row in slot.rows] for slot in slots])
