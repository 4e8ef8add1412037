"""The package itself: its generated code, its types, its version."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys

from conftest import ROOT

PACKAGE = ROOT / "clients/python"


def test_generated_code_is_fresh(tmp_path: pathlib.Path) -> None:
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run([PACKAGE / "generate", tmp_path], check=True, env=environment)
    made = {path.name: path.read_text() for path in (tmp_path / "ringfence/v1").iterdir()}
    here = {path.name: path.read_text() for path in (PACKAGE / "src/ringfence/v1").glob("*_pb2*")}
    assert made == here and len(made) == 10


def test_types_hold() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / "target/mypy")],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_version_is_that_of_the_workspace() -> None:
    found = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)
    assert found and importlib.metadata.version("ringfence") == found[1]


def test_nothing_else_is_installed() -> None:
    files = importlib.metadata.files("ringfence") or []
    tops = {path.parts[0] for path in files}
    assert tops == {"ringfence", f"ringfence-{importlib.metadata.version('ringfence')}.dist-info"}
    names = {path.name for path in files if "licenses" in path.parts}
    assert names == {"LICENSE-APACHE", "LICENSE-MIT"}


def test_the_licences_are_those_of_the_repository() -> None:
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        assert (PACKAGE / name).read_text() == (ROOT / name).read_text()


def test_generated_code_imports_its_neighbours_relatively() -> None:
    for path in (PACKAGE / "src/ringfence/v1").glob("*_pb2.py*"):
        assert not re.search(r"^(from|import) ringfence", path.read_text(), re.M), path
