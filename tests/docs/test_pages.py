"""What only this file catches: citations of sections that do not exist, and names that a page has wrong."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from stepfold.adapters.scenarios.reading.load import loads
from stepfold.engine import effects, events
from stepfold.engine.config import Config
from stepfold.engine.state import Continue
from stepfold.engine.terminals import Ending, Terminal

ROOT = Path(__file__).resolve().parent.parent.parent
SPECIFICATION = (ROOT / "docs" / "specification.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^## (\d+)\. ", SPECIFICATION, re.MULTILINE)
PAGES = sorted((ROOT / "docs").glob("*.md"))


def section(number: int) -> str:
    return SPECIFICATION.split(f"\n## {number}. ")[1].split("\n## ")[0]


def test_the_sections_are_there() -> None:
    assert [str(number) for number in range(1, 11)] == SECTIONS


def test_every_citation_names_a_section() -> None:
    cited: dict[str, set[str]] = {}
    for folder in ("engine", "effects", "adapters", "tests", "docs", "specs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".toml") and path.is_file():
                text = path.read_text(encoding="utf-8")
                for found in re.findall(r"specification(?:\]\([^)]*\))?,\s+sections? ([\d, and to]+)", text):
                    cited[str(path.relative_to(ROOT))] = set(re.findall(r"\d+", found))

    assert len(cited) > 5
    assert {path: wrong for path, sections in cited.items() if (wrong := sections - set(SECTIONS))} == {}


@pytest.mark.parametrize("reason", list(Continue))
def test_every_continue_stands_in_section_3(reason: Continue) -> None:
    assert f"`{reason}" in section(3)


@pytest.mark.parametrize("name", [*Terminal, *Ending])
def test_every_end_stands_in_section_4(name: Terminal | Ending) -> None:
    assert f"`{name}`" in section(4)


def test_events_and_orders_of_section_1_exist() -> None:
    lists = section(1).split("### Events and effects")[1].split("### ")[0]
    named = set(re.findall(r"`([A-Z]\w+)`", lists))

    assert {name for name in named if not hasattr(events, name) and not hasattr(effects, name)} == set()
    assert {kind.__name__ for kind in effects.Effect.__args__} <= named
    assert {kind.__name__ for kind in events.Event.__args__} <= named


def test_the_example_of_the_scenario_page_is_a_scenario() -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")

    assert loads(page.split("```toml\n")[1].split("```")[0]).title == "finished result survives an abort"


def test_config_keys_of_the_scenario_page_exist_with_these_defaults() -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[\w`, ]+) \| (.+?) \|", page, re.MULTILINE)

    assert len(rows) > 8
    for names, default in rows:
        for name in re.findall(r"`(\w+)`", names):
            value = getattr(Config(), name)
            shown = {None: "unset", (): "`[]`", True: "true"}.get(value, f"`{value}`")
            assert default in (shown, f'`"{value}"`', str(value)), name
    assert {field.name for field in attrs.fields(Config)} >= {"max_turns"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
