"""The fixture ``scripted_model``."""

from __future__ import annotations

from collections.abc import Iterable

from stepfold.adapters.scripted import Answer, ScriptedModel, ScriptError


class Scripts:
    """Makes scripted models, and holds them to account when the test has passed."""

    def __init__(self) -> None:
        self._made: list[ScriptedModel] = []

    def __call__(self, answers: Iterable[Answer | str] = ()) -> ScriptedModel:
        """Return a model that gives one of *answers* a call, in order: an ``Answer``, or a text for one."""
        model = ScriptedModel(answers)
        self._made.append(model)
        return model

    def stepfold_account(self) -> None:
        """Raise ``ScriptError`` where a model was asked more than it was given, or less."""
        several = len(self._made) > 1
        complaints = []
        for number, model in enumerate(self._made, 1):
            try:
                model.check()
            except ScriptError as problem:
                complaints.append(f"model {number}: {problem}" if several else str(problem))
        if complaints:
            raise ScriptError("; ".join(complaints))

    def stepfold_heard(self) -> list[object]:
        """Return what the report of a failed test tells: what was wanted, call by call."""
        wanted = [
            f"model {number}: {len(model.calls)} calls, {len(model.answers)} answers"
            for number, model in enumerate(self._made, 1)
        ]
        return [f"scripts:     {each}" for each in wanted]
