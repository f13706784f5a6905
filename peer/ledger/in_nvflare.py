"""The ledger as an NVFlare filter (NVFlare 2.9), in both chains of a client: tasks and results.

In a site's privacy policy (`local/privacy.json`) it stands before every task of every job, whatever the job says. As a
job's own filter it stands before the tasks alone that the job names: there it leaves the client no other task.

A result is made anew: of the journal's bytes, the declared constants and the server's own round. NVFlare tells its
server of a refusal by a return code alone. A result without success, or an executor that raises, is a failed training.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from anon.errors import Refused
from peer.ledger.declaration import UNREADABLE, DeclaredArray, JobTerms, Offer, OfferedArray, declaration_of
from peer.ledger.node import LOG, LedgerNode

try:
    from nvflare.apis.dxo import DXO, from_shareable
    from nvflare.apis.event_type import EventType
    from nvflare.apis.filter import Filter, FilterChainType, FilterContextKey, FilterSource
    from nvflare.apis.fl_constant import FLContextKey, ReturnCode
    from nvflare.apis.shareable import Shareable, make_reply
    from nvflare.app_common.logging.constants import is_log_streaming_allowed
except ModuleNotFoundError:  # outside NVFlare this module can be imported, and its filter does nothing
    Filter = object

ROUND: Final = "current_round"
WEIGHTS: Final = "WEIGHTS"
DIFFERENCE: Final = "WEIGHT_DIFF"
_ASKED: Final = "anonml_ledger_asked"
_TYPES: Final = {"float32": "<f4", "float64": "<f8"}
_FRAMEWORKS: Final = frozenset({"DXO", "__headers__"})


class LedgerFilter(Filter):  # type: ignore[misc]
    """One job's ledger. `declared`: the path of a TOML file, or its content. `task`: the one that is answered.

    A job that is relative has results of full weights, any other has differences.
    """

    def __init__(self, home: str, declared: str | Path | Mapping[str, Any], task: str = "train") -> None:
        super().__init__()
        self.home, self.task = home, task
        self.terms = declaration_of(declared)

    def node(self, fl_ctx: Any) -> LedgerNode:
        """The job in its home."""
        return LedgerNode(self.home, self.terms, os.urandom, time.time)

    def handle_event(self, event_type: str, fl_ctx: Any) -> None:
        """At a job's start, which its own components alone hear: the client has no other task."""
        if event_type == EventType.START_RUN:
            _leave_one_task(fl_ctx.get_prop(FLContextKey.RUNNER), self.task)

    def process(self, shareable: Shareable, fl_ctx: Any) -> Shareable:
        """A task before training, or its result before it leaves. An exception becomes a return code."""
        if self.get_prop(FilterContextKey.CHAIN_TYPE) == FilterChainType.TASK_DATA_CHAIN:
            return self._begun(shareable, fl_ctx)
        asked = fl_ctx.get_prop(_ASKED)
        if asked is None:
            raise Refused("the ledger's filter stands in the results' chain alone; put it into the tasks' chain too")
        name, base, number = asked
        parts = self.terms.split(self.node(fl_ctx).finish(name, self._offered(shareable), base))
        arrays = {array.name: _made(array, parts[array.name]) for array in self.terms.arrays}
        made: Shareable = DXO(self._kind, arrays, {**self.terms.constants}).to_shareable()
        made.set_return_code(ReturnCode.OK)
        if number is not None:
            made.set_header(ROUND, number)
        return made

    @property
    def _kind(self) -> str:
        return WEIGHTS if self.terms.relative else DIFFERENCE

    def _begun(self, shareable: Shareable, fl_ctx: Any) -> Shareable:
        if is_log_streaming_allowed(fl_ctx):
            raise Refused("the site lets logs go to the server; set allow_log_streaming to false in resources.json")
        task = fl_ctx.get_prop(FLContextKey.TASK_NAME)
        if task != self.task:
            raise Refused("the server asked for another task than the declared one")
        number = shareable.get_header(ROUND)
        number = number if type(number) is int else None
        name = f"task {fl_ctx.get_prop(FLContextKey.TASK_ID)}" if number is None else f"round {number}"
        runner = fl_ctx.get_prop(FLContextKey.RUNNER)
        if self.get_prop(FilterContextKey.SOURCE) != FilterSource.SITE and not _is_guarded(runner.find_executor):
            raise Refused("this client has other tasks, which pass by a job's filter; use the site's privacy.json")
        self.node(fl_ctx).begin(name)
        base = _sent(shareable, self.terms) if self.terms.relative else None
        _return_failures(runner.find_executor(task))
        fl_ctx.set_prop(_ASKED, (name, base, number), private=True, sticky=False)
        return shareable

    def _offered(self, shareable: Shareable) -> Offer | None:
        """All that training would send; None where it failed."""
        if shareable.get_return_code() != ReturnCode.OK:
            LOG.warning("training failed: the declared missing answer leaves")
            return None
        try:
            dxo = from_shareable(shareable)
            others = {str(key) for key in (*shareable, *(dxo.meta or {}))} - _FRAMEWORKS
            if dxo.data_kind != self._kind:
                others.add(f"a result of the kind {dxo.data_kind!s}")
            return Offer({str(name): _read(array) for name, array in dxo.data.items()}, frozenset(others))
        except Exception:
            return Offer({}, UNREADABLE)


def _sent(shareable: Shareable, terms: JobTerms) -> dict[str, Sequence[float]]:
    """The arrays that the server sent. Raises `Refused` where they are not as declared."""
    offer = Offer({name: _read(array) for name, array in from_shareable(shareable).data.items()})
    if (fault := terms.fault(offer)) is not None:
        raise Refused(fault)
    return {name: array.values for name, array in offer.arrays.items()}


def _is_guarded(function: Any) -> bool:
    return getattr(function, "guarded", False)


def _leave_one_task(runner: Any, task: str) -> None:
    """NVFlare knows every other task of this client as an unknown one."""
    inner = runner.find_executor

    def find_executor(name: str) -> Any:
        return inner(name) if name == task else None

    find_executor.guarded = True  # type: ignore[attr-defined]
    runner.find_executor = find_executor


def _return_failures(executor: Any) -> None:
    """NVFlare reports an executor that raises past all filters: from now on it returns its failure instead."""
    inner = executor.execute

    def execute(*given: Any) -> Any:
        try:
            return inner(*given)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)

    execute.guarded = True  # type: ignore[attr-defined]
    if not _is_guarded(inner):
        executor.execute = execute


def _read(array: Any) -> OfferedArray:
    if type(array) is not _numpy().ndarray:
        return OfferedArray("no array", (), ())
    return OfferedArray(str(array.dtype), tuple(array.shape), array.ravel().tolist())


def _made(array: DeclaredArray, data: bytes) -> Any:
    return _numpy().frombuffer(data, _TYPES[array.dtype]).reshape(array.shape).copy()


def _numpy() -> Any:
    """NVFlare's own; a peer has none."""
    return import_module("numpy")
