"""What only this file catches: code that runs from the checkout but is missing from the wheel.

An editable install imports every file in the folders, listed or not. A user gets the wheel: there a
sub-package that is not in `packages`, or a data file that no pattern takes, does not exist.
"""

import fnmatch
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FOLDER_OF: dict[str, str] = SETUPTOOLS["package-dir"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def files_of(folder: str) -> list[Path]:
    """Every file of a package folder, relative to the root, caches left out."""
    return sorted(
        path.relative_to(ROOT)
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )


def packages_on_disk() -> set[str]:
    """Every folder that holds Python, by its import name."""
    return {
        ".".join([name, *path.relative_to(folder).parent.parts])
        for name, folder in FOLDER_OF.items()
        for path in files_of(folder)
        if path.suffix == ".py"
    }


def wheel_names() -> set[str]:
    """The names that the package files should have in a wheel."""
    return {
        "/".join([*name.split("."), *path.relative_to(folder).parts])
        for name, folder in FOLDER_OF.items()
        for path in files_of(folder)
    }


def test_every_package_on_disk_is_listed() -> None:
    listed = SETUPTOOLS["packages"]

    missing, stale = packages_on_disk() - set(listed), set(listed) - packages_on_disk()

    assert not missing, f"add to [tool.setuptools] packages in pyproject.toml: {sorted(missing)}"
    assert not stale, f"take out of [tool.setuptools] packages in pyproject.toml: {sorted(stale)}"
    assert listed == sorted(set(listed)), "keep the packages sorted, each once"


def test_every_package_is_a_regular_one() -> None:
    files = [path for folder in FOLDER_OF.values() for path in files_of(folder)]
    packages = {path.parent for path in files if path.suffix == ".py"}

    assert [] == sorted(str(package) for package in packages if package / "__init__.py" not in files)


def test_stepfold_is_a_namespace() -> None:
    assert not (ROOT / "stepfold").exists(), "a stepfold/ folder would hide the installed packages"


def test_every_top_package_is_typed() -> None:
    # A marker counts for the packages below it, and a namespace package can have none of its own.
    assert [] == [folder for folder in FOLDER_OF.values() if not (ROOT / folder / "py.typed").is_file()]


def test_every_data_file_has_a_pattern() -> None:
    patterns = SETUPTOOLS["package-data"]["*"]
    data = [path for folder in FOLDER_OF.values() for path in files_of(folder) if path.suffix != ".py"]

    assert [] == [
        str(path) for path in data if not any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns)
    ]


def test_the_tools_know_every_top_package() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    linked = re.search(r"^PACKAGES := (.+)$", makefile, re.MULTILINE)

    assert linked is not None
    assert sorted(FOLDER_OF.values()) == sorted(linked[1].split()), "mypy sees only what make links"
    assert sorted(FOLDER_OF) == sorted(PROJECT["tool"]["importlinter"]["root_packages"])


def test_the_lock_holds_what_the_project_asks_for() -> None:
    pinned = {
        canonicalize_name(name): version
        for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK, re.MULTILINE)
    }
    lists = [PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values()]
    asked = [Requirement(text) for texts in lists for text in texts]

    assert [] == [
        str(requirement)
        for requirement in asked
        if requirement.name != "stepfold"
        and not requirement.specifier.contains(pinned.get(canonicalize_name(requirement.name), "0"))
    ], "run `make lock`"


def test_the_lock_is_exact_hashed_and_names_no_index() -> None:
    entries = re.findall(r"^[^\s#].*(?:\n {4}--hash=.*)*", LOCK, re.MULTILINE)

    assert entries
    assert [] == [entry for entry in entries if not re.match(r"[\w.-]+==\S+ .*\\\n {4}--hash=sha256:", entry)]
    assert "://" not in LOCK


def test_the_wheel_holds_every_file(tmp_path: Path) -> None:
    source = tmp_path / "a checkout"
    for folder in FOLDER_OF.values():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, source / folder, ignore=ignored, dirs_exist_ok=True)
    for path in [ROOT / "pyproject.toml", ROOT / "LICENSE", *ROOT.glob("*.md")]:
        shutil.copy(path, source)
    expected = wheel_names()

    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", ".", *offline, "--wheel-dir", "out"],
        cwd=source,
        check=True,
        capture_output=True,
        timeout=120,
    )

    [wheel] = (source / "out").glob("stepfold-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert expected == {name for name in names if name.startswith("stepfold/")}
