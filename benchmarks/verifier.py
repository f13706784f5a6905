"""The page that checks a published study, docs/verifier/verify.html, on a large one in Chromium.

    python -m benchmarks.verifier [--members 10000]

Every member has a packet, and the model is one of the additive classifier. So all tokens are checked, all packets are
counted, and the result is found again. The study is made first, which takes as long. Goal: 300 s in the browser, by the
clock. Prints a table with the browser's processor time besides, writes benchmarks/out/verifier.json, and exits with 1
where the goal is missed or the page finds a fault.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from anon.transparency.documents import encode_chain
from benchmarks.figures import Figure, publish
from benchmarks.vectors.study import Study, begun, concluded, enrolled, sent

PAGE = Path(__file__).resolve().parents[1] / "docs" / "verifier" / "verify.html"
GOAL, LONGEST = 300.0, 3600
_ADDITIVE = '[learning]\nclassifier = "additive"\nscore_share = 0.2\nbase_rate = 0.4\n'
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def files_of(study: Study) -> Iterator[tuple[str, bytes]]:
    """The folder that a study is published as."""
    yield "heads", encode_chain(study.chain())
    for number, (place, body) in enumerate(study.bodies.items()):
        yield f"documents/{number}", body
        yield from ((f"contents/{number}/{at}", content) for at, content in enumerate(study.contents.get(place, ())))


def checked(folder: Path, profile: Path) -> Figure:
    """The page's verdict on a folder, and its time."""
    options = webdriver.ChromeOptions()
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.get(PAGE.as_uri())
        started, before = time.monotonic(), _processor(profile)
        driver.find_element(By.ID, "picker").send_keys(str(folder))
        verdict = WebDriverWait(driver, LONGEST, poll_frequency=1).until(
            lambda page: page.find_element(By.ID, "state").get_attribute("data-verdict")
        )
        took, spent = time.monotonic() - started, _processor(profile) - before
        print(driver.find_element(By.TAG_NAME, "main").text)
        return {"verdict": verdict, "seconds": round(took, 1), "processor s": round(spent, 1)}
    finally:
        driver.quit()


def _processor(profile: Path) -> float:
    """Processor seconds of the browser with this profile, all its processes together."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if str(profile).encode() in (path / "cmdline").read_bytes():
                ticks += sum(map(int, (path / "stat").read_text().rpartition(")")[2].split()[11:13]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Make a study, let the page check it, and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--members", type=int, default=10_000)
    members = parser.parse_args().members
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "study")
        study = begun("cuts", "verifier", _ADDITIVE, maximum=members)
        for name, body in files_of(concluded(sent(enrolled(study, members)))):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(body)
        found = checked(folder, Path(place, "profile"))
    publish("verifier", [{"members": members, **found}], {"goal_seconds": GOAL})
    sys.exit(found["verdict"] != "none" or float(found["seconds"] or 0) > GOAL)


if __name__ == "__main__":
    main()
