"""The house rules, checked: sizes, names, docstrings, layers, and nothing of any one machine."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "effects", "adapters")
SOURCES = sorted(path for name in (*PACKAGES, "benchmarks") for path in (ROOT / name).rglob("*.py"))
SHIPPED = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in PACKAGES]
LINES_MAX = 400
FUNCTION_LINES_MAX = 60
FILES_MAX = 14
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
# Spelled in two parts, so that this file does not trip over itself.
MACHINE_PATHS = re.compile(r"/(?:wor" + r"k|far" + r"m|roo" + r"t|tm" + r"p)/[A-Za-z.]")
MAY_NAME_PATHS = {"requirements.lock"}


def ident(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SOURCES, ids=ident)
def test_a_file_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES_MAX


@pytest.mark.parametrize("path", SOURCES, ids=ident)
def test_a_function_is_short(path: Path) -> None:
    long = [
        f"{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert [] == long


def test_no_folder_or_file_has_a_name_that_says_nothing() -> None:
    parts = {part.removesuffix(".py") for path in SOURCES for part in path.relative_to(ROOT).parts}
    assert not parts & FORBIDDEN_NAMES


def test_no_folder_is_crowded() -> None:
    counts = Counter(path.parent.relative_to(ROOT) for path in SHIPPED if path.name != "__init__.py")
    assert {} == {str(folder): count for folder, count in counts.items() if count > FILES_MAX}


def public_without_docstring(module: ast.Module) -> Iterator[str]:
    """Yield what is public in *module* and says nothing of itself."""
    if module.body and not ast.get_docstring(module):
        yield "the module"
    for node in module.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        overload = any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)
        if not node.name.startswith("_") and not ast.get_docstring(node) and not overload:
            yield node.name


@pytest.mark.parametrize("path", SHIPPED, ids=ident)
def test_what_is_public_says_what_it_is(path: Path) -> None:
    assert [] == list(public_without_docstring(parsed(path)))


def imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", SHIPPED, ids=ident)
def test_imports_point_one_way(path: Path) -> None:
    above = {
        "engine": ("stepfold.effects", "stepfold.adapters", "tests", "anthropic"),
        "effects": ("stepfold.adapters", "tests", "anthropic"),
        "adapters": ("tests",),
    }[path.relative_to(ROOT).parts[0]]
    assert [] == [name for name in imported(parsed(path)) if name.startswith(above)]


@pytest.mark.parametrize("path", SHIPPED, ids=ident)
def test_the_vendor_is_imported_late(path: Path) -> None:
    """``import anthropic`` costs a second: only inside functions, or where a type checker alone looks."""
    early = [
        name
        for node in parsed(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imported(ast.Module([node], []))
        if name.split(".")[0] == "anthropic"
    ]
    assert [] == early


def tracked() -> list[Path]:
    """Return the files under version control, or nothing where git cannot tell."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / name for name in done.stdout.split("\0") if name] if done.returncode == 0 else []


def test_no_path_of_one_machine_is_committed() -> None:
    files = tracked()
    if not files:
        pytest.skip("not a git checkout: nothing tells which files are committed")
    found = [
        f"{ident(path)}:{number}"
        for path in files
        if path.name not in MAY_NAME_PATHS and path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert [] == found


def test_the_search_for_such_paths_finds_one() -> None:
    assert MACHINE_PATHS.search("see /tm" + "p/x")
    assert not MACHINE_PATHS.search("a/work in/progress")
