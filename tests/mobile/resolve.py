"""Does a peer's installation resolve for phones? `python tests/mobile/resolve.py [--update] [--site FOLDER]`

Walks the requirements of pyproject.toml as a phone's pip would, with the pinned versions of constraints.txt and
constraints-mobile.txt and with markers judged as on the phone, and asks the configured package index for a wheel that
fits each platform's tags. Nothing is built from source. Exit code 1 when something that `resolved.json` says resolves
does not, 2 when the index does not answer, so that nothing was checked. A wheel that is new is told, and not required.

`--update` writes `resolved.json`. `--site FOLDER` installs what a phone would get into FOLDER, for the tests: the pure
wheels as they are, and for packages with a wheel of the phone's own this machine's.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).with_name("resolved.json")
PLATFORMS = {
    "android arm64": ("android", "Android", ("android_24_arm64_v8a",)),
    "ios arm64": ("ios", "iOS", ("ios_13_0_arm64_iphoneos",)),
}
PYTHONS = ("3.13", "3.14")
NATIVE = ("py_arkworks_bls12381", "pynacl", "pycryptodome", "cffi", "cryptography", "cbor2")
"""Compiled packages that the profile goes without, here at constraints.txt's version: asked for, so that news shows."""
PROBE = "segno"
Wheels = dict[str, str]



def pins(*files: str) -> dict[str, str]:
    """Name -> version, later files winning."""
    lines = (line.split("#")[0].strip() for file in files for line in (ROOT / file).read_text().splitlines())
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def locked(*files: str) -> dict[tuple[str, str], str]:
    """Name and version -> the requirement with its hashes, without a marker of other systems."""
    found = {}
    for file in files:
        for entry in re.split(r"\n(?=\S)", (ROOT / file).read_text()):
            first, *hashes = entry.split(" \\\n")
            name, _, version = first.partition(" ;")[0].partition("==")
            found[canonicalize_name(name), version] = " \\\n".join([f"{name}=={version}", *hashes]).rstrip() + "\n"
    return found


def environment(platform: str, python: str) -> dict[str, str]:
    """The environment of a phone, by which a requirement's marker is evaluated."""
    sys_platform, system, _ = PLATFORMS[platform]
    return {
        "sys_platform": sys_platform,
        "platform_system": system,
        "os_name": "posix",
        "platform_machine": "arm64" if sys_platform == "ios" else "aarch64",
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }


def wanted(requirements: Iterable[str], where: Mapping[str, str], extras: Iterable[str] = ()) -> list[Requirement]:
    """Those that apply on the phone."""
    parsed = [Requirement(text) for text in requirements]
    return [
        one
        for one in parsed
        if one.marker is None or any(one.marker.evaluate({**where, "extra": extra}) for extra in ("", *extras))
    ]


def ask(pinned: list[str], platform: str, python: str) -> list[dict[str, Any]] | None:
    """pip's report on these exact versions, or None when one of them has no wheel that fits."""
    tags = [word for tag in PLATFORMS[platform][2] for word in ("--platform", tag)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"),
            *("--only-binary", ":all:", "--implementation", "cp", "--python-version", python, *tags),
            *("--target", folder, "--report", str(report), *pinned),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        return json.loads(report.read_text())["install"] if done.returncode == 0 else None


def resolve(platform: str, python: str) -> tuple[Wheels, list[str]]:
    """The wheel of each package of the closure, and the packages without one."""
    versions, where = pins("constraints.txt", "constraints-mobile.txt"), environment(platform, python)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    todo, wheels, missing = wanted(project["dependencies"], where), {}, []
    while todo:
        names = {canonicalize_name(one.name): one for one in todo}
        fresh = [name for name in names if name not in wheels and name not in missing]
        for name in fresh:
            if not names[name].specifier.contains(versions[name]):
                raise SystemExit(f"{names[name]} does not allow the pinned {versions[name]}; change constraints")
        extras = {name: one.extras for name, one in names.items()}
        todo = []
        for found in _found([f"{name}=={versions[name]}" for name in fresh], platform, python):
            name = canonicalize_name(found["metadata"]["name"])
            wheels[name] = found["download_info"]["url"].rpartition("/")[2]
            todo += wanted(found["metadata"].get("requires_dist", []), where, extras.get(name, ()))
        missing += [name for name in fresh if name not in wheels]
    return wheels, missing


def _found(pinned: list[str], platform: str, python: str) -> list[dict[str, Any]]:
    together = ask(pinned, platform, python) if pinned else []
    if together is not None:
        return together
    return [found for one in pinned for found in ask([one], platform, python) or []]


def kind(wheel: str) -> str:
    """`pure`, or `own` for a wheel of the platform's own."""
    return "pure" if all(tag.platform == "any" for tag in parse_wheel_filename(wheel)[3]) else "own"


def judge(said: Mapping[str, str], expected: Mapping[str, str], missing: list[str]) -> list[str]:
    """The packages that resolved before and do not now."""
    lost = [name for name in expected if name not in said]
    return sorted({*lost, *missing})


def look(platform: str, python: str, expected: Mapping[str, Any]) -> tuple[dict[str, Any], list[str], list[str]]:
    """The findings for a platform, the regressions against the expected findings, and lines that state both."""
    wheels, missing = resolve(platform, python)
    pinned = pins("constraints.txt")
    native = [name for name in NATIVE if ask([f"{name}=={pinned[canonicalize_name(name)]}"], platform, python)]
    said = {name: kind(wheel) for name, wheel in sorted(wheels.items())}
    own = [name for name in said if said[name] == "own"]
    news = [name for name in native if name not in expected.get("native_wheels", [])]
    lost = judge(said, expected.get("resolves", {}), missing)
    return {"resolves": said, "native_wheels": native}, lost, [
        (
            f"{platform}, Python {python}: {len(said)} packages resolve, {len(own)} with a wheel of its own: "
            f"{', '.join(own)}"
        ),
        f"  gone without, and indeed without a wheel: {', '.join(name for name in NATIVE if name not in native)}",
        *(f"  DOES NOT RESOLVE: {name}: the index has no wheel for it" for name in missing),
        *(
            f"  news: {name} {pinned[canonicalize_name(name)]} has a wheel now; docs/mobile.md could use it"
            for name in news
        ),
        *(f"  REGRESSION: {name} resolved before, or is new and does not" for name in lost),
    ]


def install(folder: Path, machine: Sequence[str] = ()) -> None:
    """Install the packages that a phone would get into `folder`. `machine`: pip's words for another one's wheels."""
    versions = pins("constraints.txt", "constraints-mobile.txt")
    kinds = json.loads(EXPECTED.read_text())[f"{next(iter(PLATFORMS))}, {PYTHONS[0]}"]["resolves"]
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--target", folder)
    hashed = locked("locks/peer.txt", "locks/mobile.txt")
    with tempfile.TemporaryDirectory() as scratch:
        for wheel, tags in (("pure", ("--platform", "any")), ("own", machine)):
            lock = Path(scratch) / f"{wheel}.txt"
            lock.write_text("".join(hashed[name, versions[name]] for name, found in kinds.items() if found == wheel))
            subprocess.run([*pip, *tags, "--require-hashes", "-r", lock], check=True, timeout=600)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--site", type=Path)
    arguments = parser.parse_args()
    if arguments.site:
        install(arguments.site)
        return 0
    if ask([f"{PROBE}=={pins('constraints.txt')[PROBE]}"], next(iter(PLATFORMS)), PYTHONS[0]) is None:
        print("the package index does not answer, not even with a package that is pure Python: nothing was checked")
        return 2
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    outcome, worse = {}, False
    places = {f"{platform}, {python}": (platform, python) for platform in PLATFORMS for python in PYTHONS}
    with ThreadPoolExecutor() as pool:  # the index takes longer than this machine does
        found = pool.map(lambda name: look(*places[name], expected.get(name, {})), places)
        for name, (said, lost, lines) in zip(places, found, strict=True):
            outcome[name] = said
            print("\n".join(lines))
            worse = worse or bool(lost)
    if arguments.update:
        EXPECTED.write_text(json.dumps(outcome, indent=1, sort_keys=True) + "\n")
    return int(worse and not arguments.update)


if __name__ == "__main__":
    sys.exit(main())
