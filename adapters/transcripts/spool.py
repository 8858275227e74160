"""Messages that are kept on disk until their conversation is whole."""

from __future__ import annotations

import pickle
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from typing import Final, cast, overload

from stepfold.engine.messages import Message

IN_MEMORY_BYTES: Final = 4 << 20  # a spool that is smaller than this is no file


class Spool:
    """
    Keeps messages of any number of conversations in one temporary file.

    The file has no name, and is gone with the last conversation that is read
    from it.  Nobody else can write to it, which is why it holds pickles.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115  (closed with the last holder)

    def add(self, message: Message) -> int:
        """Keep *message*; return where; raises ``OSError``."""
        at = self._file.seek(0, 2)
        pickle.dump(message, self._file, pickle.HIGHEST_PROTOCOL)
        return at

    def get(self, at: int) -> Message:
        """Return the message that is kept at *at*; raises ``OSError``."""
        self._file.seek(at)
        return cast(Message, pickle.load(self._file))


class Kept(Sequence[Message]):
    """
    The messages of one conversation, read from a spool whenever they are asked for.

    Args:
        spool: Where they are.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._places = array("q")

    def append(self, message: Message) -> None:
        """Add a message; raises ``OSError``."""
        self._places.append(self._spool.add(message))

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Message]:
        return map(self._spool.get, self._places)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...

    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(map(self._spool.get, self._places[index]))
        return self._spool.get(self._places[index])
