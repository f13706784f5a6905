"""The guard of every loop of a long-lived command: a disk, a database or a network that is away ends none of them.

A turn of a loop that fails is told in a line, and tried again after a pause that grows. The first that goes well is
told too. Each loop names the errors that must end it. Everything else, a fault of this program too, is met again at the
next turn.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from attrs import define, field

from anon.errors import FAULT_IN_THIS_PROGRAM, Damaged, NoRoom, Refused, Unreachable, of_the_system
from anon.storage.durable import unwritten
from anon.text.foreign import whole_place
from anon.text.sentences import Term

SAID_AGAIN = 16
"""Tries after which the same is said once more, then after twice as many each time: some minutes, and ever more."""
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 30.0
"""Seconds between two turns of a loop that fails. Who was away for a minute is not waited for much longer."""
PROBED = 2**20
"""Bytes that are written to see that a disk takes them."""
_FOR_READERS = (Damaged, NoRoom, Refused, Unreachable)
"""Errors that are written for whoever runs a command. The text of others may quote what was sent."""
_OF_A_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_OF_A_FILE = _OF_A_DISK | {errno.EACCES, errno.EPERM, errno.EIO, errno.ENOENT, errno.ENOTDIR, errno.ENODEV, 116}
"""Where the error names a file; 116 is a network's folder that is gone."""
_LOG = logging.getLogger(__name__)


def pause_after(tries: int, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> float:
    """Seconds until the next try, twice as many each time."""
    return min(first * (1 << min(tries - 1, 10)), longest)


def told(error: BaseException) -> str:
    """An error in a sentence for whoever runs the command."""
    if isinstance(error, _FOR_READERS):
        return str(error)
    named = isinstance(error, OSError) and isinstance(error.filename, str)
    if isinstance(error, OSError) and error.errno in (_OF_A_FILE if named else _OF_A_DISK):
        return unwritten(whole_place(error.filename) if named else Term("the disk"), of_the_system(error))
    return FAULT_IN_THIS_PROGRAM


def disk_fault(folder: Path) -> str:
    """Why nothing can be written to a folder, in a sentence; empty when it can. It is tried, and leaves nothing."""
    try:
        with TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBED))
            probe.flush()
    except OSError as error:
        return told(OSError(error.errno, error.strerror, str(folder)))
    return ""


@define
class Guard:
    """The guard of one loop. `who` is told to fail; `ends` are errors that end the loop; `elsewhere` are those that
    another loop of this process says; `words` puts one in words. `tells_end` is False where a turn that goes well
    lasts, so that its end is no news.

        guard = Guard("the lines of this command")
        while True:
            with guard.turn():
                ...
            await sleep(guard.pause or SECONDS)
    """

    who: str
    ends: tuple[type[Exception], ...] = ()
    words: Callable[[Exception], str] = told
    say: Callable[[str], None] | None = None
    longest: float = LONGEST_PAUSE
    elsewhere: tuple[type[Exception], ...] = ()
    tells_end: bool = True
    _tries: int = field(default=0, init=False)
    _said: str = field(default="", init=False)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One turn. Raises what must end the loop, and nothing else."""
        try:
            yield
        except self.ends:
            raise
        except Exception as error:
            self._failed(error)
        else:
            if self._said and self.tells_end:
                self._tell(logging.WARNING, f"{self.who} can go on again.")
            self._tries, self._said = 0, ""

    @property
    def pause(self) -> float:
        """Seconds until the next turn is due; 0 after one that went well."""
        return pause_after(self._tries, longest=self.longest) if self._tries else 0.0

    def _failed(self, error: Exception) -> None:
        """Say it, the same no oftener than after one try, `SAID_AGAIN`, twice as many and so on."""
        self._tries += 1
        if isinstance(error, self.elsewhere):
            return
        said, again = self.words(error), self._tries >= SAID_AGAIN and not self._tries & (self._tries - 1)
        if said != self._said or again:
            self._said = said
            self._tell(logging.ERROR, f"{self.who} cannot go on: {said.rstrip('.')}. It is tried again by itself.")
            if FAULT_IN_THIS_PROGRAM in said:
                _LOG.error("the fault's places", exc_info=error)

    def _tell(self, level: int, line: str) -> None:
        if self.say is None:
            _LOG.log(level, "%s", line)
        else:
            self.say(line)
