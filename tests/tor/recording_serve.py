"""`anonml aggregator serve` as it is, that also writes down every packet that came and the word it was answered with.

A line is `came HEX` before a packet is looked at, and `WORD HEX` once its answer is durable. The file is named by
ANONML_TEST_RECORD.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from aggregator.study.live import LiveStudy
from anonml import main

RECORD = Path(os.environ["ANONML_TEST_RECORD"])
_submit = LiveStudy.submit


def _note(word: str, body: bytes) -> None:
    descriptor = os.open(RECORD, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{word} {body.hex()}\n".encode())
    os.close(descriptor)


async def _recorded(self: LiveStudy, sealed_untrusted: bytes) -> str:
    _note("came", sealed_untrusted)
    word = await _submit(self, sealed_untrusted)
    _note(word, sealed_untrusted)
    return word


LiveStudy.submit = _recorded  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.argv[1:1] = ["aggregator", "serve"]
    main()
