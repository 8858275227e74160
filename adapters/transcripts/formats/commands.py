"""The commands that SWE-agent names to its model, and a text of the model as a call of one of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

ONE_LINE: Final = re.compile(r"([A-Za-z_]\w*)(| .*?) - ")
TWO_LINES: Final = re.compile(r"\s+signature: ([A-Za-z_]\w*)(| .*)")
BARE: Final = re.compile(r"([A-Za-z_]\w*)(| .*)")
PARAMETER: Final = re.compile(r"<(\w+)>")
PART: Final = re.compile(r"\[[^\]]*\]|\S+")
SHELL: Final = frozenset(";&|<>()\n")
"""Words of these alone join commands, or send somewhere what one prints."""


@attrs.frozen
class Signature:
    """
    How a command is written.

    Args:
        required, optional: Its positional arguments, in order; two names are one word with a colon in it.
        options: Its options, ``--name``, with the argument that each of them gives.
        lines: The argument that lines below the first one give; "" where it has none.
        end: The line that ends them.
        known: Whether all of it was understood.
    """

    required: tuple[tuple[str, ...], ...] = ()
    optional: tuple[str, ...] = ()
    options: Mapping[str, str] = attrs.field(factory=dict)
    lines: str = ""
    end: str = ""
    known: bool = True


def signature_of(first: str, below: str = "", end: str = "") -> Signature:
    """
    Return the signature that is told.

    Args:
        first: What follows the command's name, as ``<path> [<line_number>]``.
        below: The line under it, as ``<replacement_text>``; "" where there is none.
        end: The line under that.
    """
    required: list[tuple[str, ...]] = []
    optional: list[str] = []
    options: dict[str, str] = {}
    known = True
    for part in PART.findall(first):
        names = tuple(PARAMETER.findall(part))
        bare = PARAMETER.sub("", part)
        if part.startswith("[--") and len(names) == 1 and bare.endswith(" ]"):
            options[bare[1:-2]] = names[0]
        elif bare == "[]" and len(names) == 1:
            optional.append(names[0])
        elif bare in ("", "''", '""', ":") and len(names) == 1 + (bare == ":"):
            required.append(names)
        else:
            known = False
    lines = PARAMETER.fullmatch(below)
    return Signature(tuple(required), tuple(optional), options, lines[1] if lines else "", end, known)


def named_in(prompt: str) -> dict[str, Signature]:
    """Return the commands that a system prompt of SWE-agent names, by name."""
    found: dict[str, Signature] = {}
    lines = [*prompt.splitlines(), "", ""]
    listed = False  # below "COMMANDS:", where older versions write a line a command
    at = 0
    while at < len(lines) - 2:
        line, below, end = lines[at], lines[at + 1].strip(), lines[at + 2].split(" - ")[0].strip()
        at += 1
        if line.strip() == "COMMANDS:":
            listed = True
            continue
        listed = listed and bool(line.strip())
        block = PARAMETER.fullmatch(below) is not None and bool(end)
        told = TWO_LINES.fullmatch(line)
        if told is None and listed:
            told = BARE.fullmatch(line) if block else ONE_LINE.match(line)
        if told is not None:
            found[told[1]] = signature_of(told[2], *((below, end) if block else ()))
            at += 2 * block
    return found


SHIPPED: Final[Mapping[str, Signature]] = MappingProxyType(
    {
        "open": signature_of("<path> [<line_number>]"),
        "goto": signature_of("<line_number>"),
        "scroll_down": signature_of(""),
        "scroll_up": signature_of(""),
        "create": signature_of("<filename>"),
        "search_dir": signature_of("<search_term> [<dir>]"),
        "search_file": signature_of("<search_term> [<file>]"),
        "find_file": signature_of("<file_name> [<dir>]"),
        "edit": signature_of("<start_line>:<end_line>", "<replacement_text>", "end_of_edit"),
        "submit": signature_of(""),
    }
)
"""Those that it has by default, for a trajectory that does not keep its prompt."""


def called(action: str, named: Mapping[str, Signature]) -> tuple[str, dict[str, Any]]:
    """
    Return the tool that *action* calls, and with what.

    It is one of *named* where that command, and nothing else, is what the text
    holds; else ``command`` with the whole text.  Arguments that do not fit the
    command's signature are one text, ``arguments``.

    Args:
        action: What the model wrote, as ``open src/a.py 12``.
        named: The commands that it was told of.
    """
    first, _, rest = action.strip().partition("\n")
    name, _, told = first.partition(" ")
    signature = named.get(name)
    below = _below(rest, signature) if signature is not None else None
    if signature is None or below is None or not _alone(told):
        return "command", {"command": action}
    given = _fitted(_words(told) or [], signature) if signature.known else None
    if given is None:
        given = {"arguments": told.strip()}
    return name, given | ({signature.lines: below} if signature.lines else {})


def _below(rest: str, signature: Signature) -> str | None:
    """Return the lines under the first one without what ends them; None: they are no part of the command."""
    if not signature.lines:
        return None if rest.strip() else ""
    lines = rest.split("\n")
    if lines[-1].strip() != signature.end or any(line.strip() == signature.end for line in lines[:-1]):
        return None
    return "\n".join(lines[:-1])


def _words(told: str) -> list[str] | None:
    try:
        return shlex.split(told)
    except ValueError:  # a quotation mark that nothing closes
        return None


def _alone(told: str) -> bool:
    """Whether *told* is nothing but arguments, as a shell reads it."""
    parts = shlex.shlex(told, posix=True, punctuation_chars=True)
    parts.whitespace_split = True
    parts.commenters = ""
    try:
        return not any(part and SHELL.issuperset(part) for part in parts)
    except ValueError:
        return False


def _fitted(words: Iterable[str], signature: Signature) -> dict[str, Any] | None:
    """Return the arguments by name; None: they are not what the signature wants."""
    given: dict[str, Any] = {}
    places = [*signature.required, *((name,) for name in signature.optional)]
    left = iter(words)
    taken = 0
    for word in left:
        if word in signature.options:
            if (value := next(left, None)) is None:
                return None
            given[signature.options[word]] = value
            continue
        values = word.split(":") if taken < len(places) and len(places[taken]) > 1 else [word]
        if taken == len(places) or len(values) != len(places[taken]):
            return None
        given |= zip(places[taken], values, strict=True)
        taken += 1
    return given if taken >= len(signature.required) else None
