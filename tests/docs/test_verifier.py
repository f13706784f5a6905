"""The page that checks a study without an installation: its work in node beside the audit, and the page in Chromium.

The page may check less than the audit, and then says so; it never finds a fault where the audit finds none.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from aggregator.audit import audit
from anon.errors import AnonmlError
from anon.protocols.contract import Place
from anon.transparency import buckets
from anon.transparency.bucketed import BUCKETED
from anon.transparency.documents import SignedHead, encode_chain, sign_head
from anon.wire.cbor import decode, encode
from benchmarks.vectors.__main__ import FOLDER
from examples.testing import all_contents
from tests.attacks.lying_aggregators import WHOLE, finished
from tests.attacks.lying_pages import KINDS, WRITTEN, finished_board
from tests.attacks.lying_results import moved, republished
from tests.attacks.soak_pieces import piece
from tests.support.browsing import Browser, chromium
from tests.support.browsing import missing as no_browser
from tests.support.forged_studies import copied
from tests.support.masks_study import members
from tests.support.trees_study import HELD, trees_study
from tests.support.verifying import PAGE, ROOT, Verifier, disagreement, files_of, missing, verifier
from tests.support.world import published

GOLDEN = ROOT / "tests" / "golden" / "studies.zip"
SOURCE = ROOT / "docs" / "verifier"
LIES, IN_A_PIECE = 1000, 50


@pytest.fixture(scope="module")
def work() -> Iterator[Verifier]:
    with verifier() as running:
        running.do("sizes", threshold=8, mean=2)
        yield running


@pytest.fixture
def few_in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight members have buckets of two, as in `work`."""
    for name, number in (("THRESHOLD", 8), ("MEAN", 2), ("LEAST", 0)):
        monkeypatch.setattr(buckets, name, number)


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four studies as they were published, without the keys that lie beside them."""
    folder = tmp_path_factory.mktemp("published")
    with zipfile.ZipFile(GOLDEN) as archive:
        names = [name for name in archive.namelist() if re.search(r"/(heads|documents/|contents/|[a-z]+\.\w+$)", name)]
        archive.extractall(folder, [name for name in names if not name.endswith("facts.json")])
    return folder


@pytest.mark.process
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_page_agrees_with_every_vector() -> None:
    wrong = []
    with verifier() as running:
        for path in sorted(FOLDER.glob("*.json")):
            cases = json.loads(path.read_text("utf-8"))["cases"]
            for case, said in zip(cases, running.do("vectors", file=str(path))["verdicts"], strict=True):
                told = said.get("gives")
                if "broken" in said or (told is not None) is not case["holds"] or not _gives(case, told):
                    wrong.append((path.stem, case["name"], said))
    assert wrong == []


@pytest.mark.process
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_page_judges_tokens_together_as_alone() -> None:
    """Those of one study, parts of small order among them, in one batch."""
    with verifier() as running:
        verdicts = running.do("together", file=str(FOLDER / "tokens.json"))["verdicts"]
    assert len(verdicts) > 100 and {holds for _name, holds, _found in verdicts} == {True, False}
    assert [name for name, holds, found in verdicts if holds is not found] == []


def _gives(case: dict[str, object], told: object) -> bool:
    gives = case.get("gives", {})
    assert isinstance(gives, dict)
    return not gives or (isinstance(told, dict) and {name: told.get(name) for name in gives} == gives)


@pytest.mark.process
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_studies_that_were_published_have_no_fault(studies: Path) -> None:
    with verifier() as running:
        for study in sorted(studies.iterdir()):
            files = {
                path.relative_to(study).as_posix(): path.read_bytes() for path in study.rglob("*") if path.is_file()
            }
            shown = running.audit(files)
            assert audit(study).ok and shown["faults"] == [], shown
            assert (shown["enrolled"], shown["packets"]) == (12, 36 if study.name == "median" else 12)


def told(work: Verifier, name: str, number: int) -> str:
    """The difference of both verdicts on one lie, or an empty text."""
    forge = KINDS[name].tell(Random(f"{name} {number}"))
    try:
        audited = forge.audited()
    except AnonmlError:
        audited = None
    difference = disagreement(audited, work.audit(files_of(forge)))
    return difference and f"{name} {number}: {difference}"


@pytest.mark.process
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_page_agrees_with_the_audit_on_lies(work: Verifier, few_in_buckets: None) -> None:
    assert [difference for name in [*KINDS][::4] if (difference := told(work, name, 0))] == []


@pytest.mark.process
@pytest.mark.skipif(bool(missing()), reason=missing())
async def test_pages_that_members_wrote_are_checked(tmp_path: Path) -> None:
    async with members(tmp_path, trees_study(), HELD) as world:
        await world.go_on()
        live, bodies = world.live, await published(world.live)
        contents = await all_contents(live)

        def folder(changed: Mapping[Place, bytes]) -> dict[str, bytes]:
            chain: list[SignedHead] = []
            for place, body in changed.items():
                chain.append(sign_head(live.tools.home.signing_key, live.study, chain, *place, body))
            files = {f"documents/{number}": body for number, body in enumerate(changed.values())}
            for head in (one.head for one in chain if one.head.kind in BUCKETED):
                content = contents(head.number, 0)
                assert content is not None
                files[f"contents/{head.number}/0"] = content
            return files | {"heads": encode_chain(chain)}

        *heading, packets = decode(bodies["page", 0])
        lies = {
            "one packet less": [*heading, packets[1:]],
            "out of order": [*heading, packets[::-1]],
            "of another round": [*heading[:2], 1, packets],
            "with another token": [*heading, [packets[0][:-1] + bytes([packets[0][-1] ^ 1]), *packets[1:]]],
        }
        with verifier() as running:
            shown = running.audit(folder(bodies))
            assert shown["faults"] == [] and any(one.startswith("page 0: 6 packets") for one in shown["holds"]), shown
            for what, page in lies.items():
                faults = running.audit(folder({**bodies, ("page", 0): encode(page)}))["faults"]
                assert faults[0]["document"] == "page 0", (what, faults)


@pytest.mark.process
@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("design", WRITTEN)
def test_results_of_pages_are_recounted(design: str, work: Verifier, few_in_buckets: None) -> None:
    forge = finished_board(design)
    shown = work.audit(files_of(forge))
    assert forge.audited().ok and shown["faults"] == []
    assert any(" is what the pages give" in one for one in shown["holds"]), shown["holds"]


@pytest.mark.process
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_model_of_a_local_rule_is_recounted_and_each_lie_in_it_is_found(
    work: Verifier, few_in_buckets: None
) -> None:
    forge = finished(Random(1), "local rule", sizes=[WHOLE])
    shown = work.audit(files_of(forge))
    assert forge.audited().ok and shown["faults"] == []
    recounted = "model 0 is what the packets give, to a millionth of each number"
    assert {recounted, "the counts of edges 0 are those of its packets"} <= {*shown["holds"]}

    def lie(change: Callable[[dict[str, Any]], object]) -> list[dict[str, str]]:
        faults: list[dict[str, str]] = work.audit(files_of(republished(copied(forge), change)))["faults"]
        return faults

    lies: dict[str, Callable[[dict[str, Any]], object]] = {
        "tables": lambda model: moved(Random(2), model["tables"][0]["log_odds"]),
        "base_rate": lambda model: model.update(base_rate=model["base_rate"] * 0.999),
        "chance": lambda model: model.update(chance=model["chance"] * 0.999),
        "belief": lambda model: model["belief"].update(heard=abs(model["belief"]["heard"] - 0.01)),
    }
    for field, change in lies.items():
        why = f"is not what the documents give: its {field} differs"
        assert [(one["document"], one["why"]) for one in lie(change)] == [("model 0", why)]


@pytest.mark.soak
@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("number", range(LIES // IN_A_PIECE))
def test_the_page_agrees_with_the_audit_on_many_lies(
    number: int, work: Verifier, few_in_buckets: None, pytestconfig: pytest.Config
) -> None:
    with piece(pytestconfig, "verifier", number, LIES // IN_A_PIECE):
        names = [*KINDS]
        lies = [divmod(lie, len(names)) for lie in range(number * IN_A_PIECE, (number + 1) * IN_A_PIECE)]
        assert [difference for turn, kind in lies if (difference := told(work, names[kind], turn))] == []


@pytest.mark.browser
@pytest.mark.skipif(bool(no_browser()), reason=no_browser())
def test_a_folder_dropped_on_the_page_is_checked(studies: Path, tmp_path: Path) -> None:
    """A browser gives no page a folder below /dev, where files of tests may lie."""
    with TemporaryDirectory() as elsewhere, chromium(tmp_path / "profile") as browser:
        study = Path(shutil.copytree(studies / "quantile", Path(elsewhere) / "quantile"))
        browser.open(PAGE.as_uri())
        browser.asked()
        browser.find("#picker").send_keys(str(study))
        text = _verdict(browser)
        assert "No fault in what was checked" in text and "the counts of edges 0 are those of its packets" in text
        assert "report.html: the page for people is not made again" in text
        (study / "documents" / "6").write_bytes(b"another body")
        browser.open(PAGE.as_uri())
        place = {"x": 200, "y": 200}
        dragged = {"items": [], "files": [str(study)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            browser.driver.execute_cdp_cmd("Input.dispatchDragEvent", {"type": kind, **place, "data": dragged})
        assert "the body does not match its signed head" in _verdict(browser)
        assert [address for address in browser.asked() if not address.startswith(("file:", "blob:", "data:"))] == []


def _verdict(browser: Browser) -> str:
    wait = WebDriverWait(browser.driver, 120, poll_frequency=0.2)
    wait.until(lambda driver: driver.find_element("id", "state").get_attribute("data-verdict"))
    return str(browser.text)


def test_the_lock_names_each_package_by_its_digest() -> None:
    lock = (SOURCE / "package-lock.json").read_text("utf-8")
    _own, *packages = json.loads(lock)["packages"].values()
    assert len(packages) >= 3 and "://" not in lock
    assert all(re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", one["integrity"]) for one in packages)


def test_the_page_forbids_itself_every_connection() -> None:
    page = PAGE.read_text("utf-8")
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; worker-src blob:" in page
    assert not re.search(r"<(?:img|link|iframe)\b|\b(?:src|href)=", page.partition("<script")[0])


@pytest.mark.process
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is missing: install it (Debian: apt-get install npm)")
def test_the_page_is_built_from_its_source(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "verifier", ignore=shutil.ignore_patterns("verify.html", "node_modules"))
    words = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    fetched = subprocess.run(words, cwd=tmp_path / "verifier", capture_output=True, check=False, timeout=180)
    if fetched.returncode:
        pytest.skip("the packages of the lock file cannot be fetched here")
    subprocess.run(["npm", "run", "build"], cwd=tmp_path / "verifier", capture_output=True, check=True, timeout=60)
    assert (tmp_path / "verifier" / "verify.html").read_bytes() == PAGE.read_bytes()
