"""A plugin of pytest for Windows' Python: tests run in asyncio's loop of sockets (`pytest -p
tests.windows.wakeful`).

Under Wine 8 a completion was lost now and then, by which a thread wakes the usual loop of Windows: it slept on with
work that was ready. The page and single commands keep the usual loop, in programs of their own.
"""

from __future__ import annotations

import asyncio
import sys

if sys.platform == "win32":
    asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())
