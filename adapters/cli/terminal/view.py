"""The live output of a run, for people."""

from __future__ import annotations

from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text as Styled

from stepfold.adapters.cli.terminal.words import end_line, harmless, line_of, transition_line
from stepfold.effects.ports import InputDelta, TextDelta, ThinkingDelta, ToolProgress
from stepfold.effects.result import Result
from stepfold.engine.effects import (
    BlockShown,
    CallShown,
    Continued,
    ErrorShown,
    MessageShown,
    Notice,
    SummaryShown,
    Tombstone,
)
from stepfold.engine.events import CallStatus
from stepfold.engine.messages import Opaque, Origin, Text, ToolUse, texts

STYLE_OF_CALL = {CallStatus.COMPLETED: "green", CallStatus.DENIED: "yellow"}


class View:
    """
    Prints what a run shows: the answer as it comes, one line for everything else.

    Args:
        out: Where to print.
        quiet: The answer only.

    On a terminal a line at the bottom tells what is waited for, and how long.
    """

    def __init__(self, out: TextIO, *, quiet: bool = False) -> None:
        self._console = Console(file=out, highlight=False, soft_wrap=True, markup=False, emoji=False)
        self._quiet = quiet
        self._waiting = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._names: dict[str, str] = {}
        self._mid_line = False
        self._streamed = False

    def __enter__(self) -> View:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pause()
        self._end_line()

    # ------------------------------------------------------------------- waiting

    def wait_for(self, what: str) -> None:
        """Tell at the bottom of the terminal what is waited for, from now on."""
        if self._waiting.disable:
            return
        if self._task is None:
            self._end_line()
            self._task = self._waiting.add_task(line_of(what, 80), total=None)
            self._waiting.start()
        else:
            self._waiting.reset(self._task, total=None, description=line_of(what, 80))

    def pause(self) -> None:
        """Tell no longer: something is printed, or asked."""
        if self._task is not None:
            self._waiting.stop()
            self._waiting.remove_task(self._task)
            self._task = None

    # -------------------------------------------------------------------- items

    def show(self, item: object) -> None:
        """Print one item of the run."""
        match item:
            case TextDelta(text):
                self._write(text)
            case ThinkingDelta():
                self._keep_waiting("the model thinks")
            case InputDelta():
                self._keep_waiting("the model writes a call")
            case ToolProgress(use_id, text):
                self.wait_for(f"{self._names.get(use_id, 'tool')}: {text}")
            case BlockShown(_, block):
                self._block(block)
            case CallShown():
                self._call(item)
            case Continued(reason, count, turn):
                self.line(f"-- {transition_line(reason, count, turn)}", "bold cyan")
                self.wait_for("the model")
            case MessageShown(message) if message.origin is not Origin.PROMPT:
                self.line(f"   {message.origin}: {line_of(texts(message.content))}", "dim")
            case SummaryShown(_, text):
                self.line(f"   summary: {line_of(text)}", "dim")
            case Notice(kind, text):
                self.line(f"   {kind}: {line_of(text)}", "yellow")
            case ErrorShown(failure):
                self.line(f"   error: {failure.kind}: {line_of(failure.message)}", "red")
            case Tombstone():
                self.line("   withdrawn: what came of this answer does not count", "yellow")

    def _block(self, block: object) -> None:
        match block:
            case Text(text):
                if not self._streamed:
                    self._write(text)
                self._end_line()
                self.wait_for("the model")
            case ToolUse(id, name, input):
                self._names[id] = name
                self.line(f"-> {name} {line_of(input)}", "bold")
                self.wait_for(name)
            case Opaque(type):
                self.line(f"   {type}", "dim")
        self._streamed = False

    def _call(self, item: CallShown) -> None:
        name = self._names.get(item.use_id, item.use_id)
        told = line_of("\n".join(block.text for block in item.content if isinstance(block, Text)))
        style = STYLE_OF_CALL.get(item.status, "red")
        self.line(f"<- {name} {item.status}{': ' if told else ''}{told}", style)
        self.wait_for("the model")

    # ----------------------------------------------------------------- printing

    def line(self, text: str, style: str = "") -> None:
        """Print one line about the run, above what is waited for."""
        if self._quiet:
            return
        self._end_line()
        self._console.print(Styled(text, style))

    def say(self, text: str) -> None:
        """Print one line that is not left out by ``quiet``."""
        self.pause()
        self._end_line()
        self._console.print(Styled(text))

    def finish(self, result: Result) -> None:
        """Print the end."""
        self.pause()
        usage = result.usage
        self.line(f"== {end_line(result.end)}", "bold green" if result.ok else "bold red")
        if usage.prompt_tokens or usage.output_tokens:
            self.line(f"   {usage.prompt_tokens:,} tokens in, {usage.output_tokens:,} out", "dim")
        for words in result.queued:
            self.line(f"   still queued: {line_of(words)}", "yellow")

    def _keep_waiting(self, what: str) -> None:
        if self._task is not None:
            self._waiting.update(self._task, description=what)

    def _write(self, text: str) -> None:
        """Print a piece of the answer as it comes."""
        shown = harmless(text)
        if not shown:
            return
        self.pause()
        self._console.file.write(shown)
        self._console.file.flush()
        self._mid_line = not shown.endswith("\n")
        self._streamed = True

    def _end_line(self) -> None:
        if self._mid_line:
            self._console.file.write("\n")
            self._mid_line = False
