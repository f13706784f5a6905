"""The report as PDF, by whichever program is here: the `pdf` extra, or a Chromium that prints without a window."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from anon.errors import Refused
from anon.machine.environment import Child, for_child
from anon.machine.extras import install

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 120


def to_pdf(page: str) -> bytes:
    """A self-contained page as PDF; nothing is fetched. Raises `Refused`, with what to install, where nothing can."""
    made = _by_weasyprint(page) or _by_browser(page)
    if made is None:
        raise Refused(f"no program here makes PDF: install Chromium, or pango and `{install('pdf')}`; or name an .html")
    return made


def _by_weasyprint(page: str) -> bytes | None:
    try:
        from weasyprint import HTML
        from weasyprint.urls import URLFetcher
    except (ImportError, OSError):  # OSError: the system's pango is missing
        return None
    logging.getLogger("weasyprint").setLevel(logging.ERROR)  # it warns of every style that print does not need
    made: bytes = HTML(string=page, url_fetcher=URLFetcher(allowed_protocols=())).write_pdf()
    return made


def _by_browser(page: str) -> bytes | None:
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "report.html", Path(scratch) / "report.pdf"
        source.write_text(page, "utf-8")
        root = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has none for root
        command = [program, "--headless", *root, "--disable-gpu", "--no-pdf-header-footer",
                   f"--user-data-dir={scratch}/profile", f"--print-to-pdf={target}", source.as_uri()]
        try:
            surroundings = for_child(Child.PROGRAM)
            subprocess.run(command, capture_output=True, check=False, timeout=SECONDS, env=surroundings)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired):
            return None
        return target.read_bytes() if target.is_file() else None
