"""
A small HTTP/1.1 server on 127.0.0.1 that plays the API to the real SDK.

Each request takes the next reply of the script.  Before it is answered, its
form is checked as the API would (``problems`` shares no code with the engine);
a bad one gets a 400 and is remembered in ``Loopback.refused``.
"""

from __future__ import annotations

import asyncio
import enum
import json
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

import attrs

Json = dict[str, Any]


class Ending(enum.Enum):
    """What happens after the last byte of a body."""

    END = "end"  # as HTTP wants it
    CUT = "cut"  # the connection is torn down
    HANG = "hang"  # nothing more comes


@attrs.frozen
class Reply:
    """One answer: status, headers, the body in pieces, and how it ends."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    pieces: tuple[bytes, ...] = ()
    ending: Ending = Ending.END
    silent: bool = False  # not even the head of an answer


@attrs.frozen
class Received:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: Json


def sse(event: Json) -> bytes:
    """Return *event* as the API writes it into a stream."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def stream(events: Iterable[Json], ending: Ending = Ending.END) -> Reply:
    """Return a streamed answer."""
    head = (("content-type", "text/event-stream; charset=utf-8"), ("request-id", "req_loop"))
    return Reply(200, head, tuple(map(sse, events)), ending)


def document(body: Any, status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> Reply:
    """Return an answer in one piece of JSON."""
    head = (("content-type", "application/json"), ("request-id", "req_loop"), *headers)
    return Reply(status, head, (json.dumps(body).encode(),))


def error_body(kind: str, message: str, code: str | None = None) -> Json:
    """Return an error as the API words it."""
    error: Json = {"type": kind, "message": message}
    if code is not None:
        error["details"] = {"error_code": code}
    return {"type": "error", "error": error, "request_id": "req_loop"}


def failing(
    status: int, kind: str, message: str, code: str | None = None, headers: Iterable[tuple[str, str]] = ()
) -> Reply:
    """Return an error answer."""
    return document(error_body(kind, message, code), status, headers)


Script = Callable[[Received], Reply]


class Loopback:
    """``async with Loopback(replies) as api``: ``api.url``, ``api.requests``, ``api.refused``."""

    def __init__(self, replies: Sequence[Reply] | Script, *, check: bool = True) -> None:
        self._replies = replies
        self._check = check
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[Received] = []
        self.refused: list[str] = []
        self.connections = 0
        self.lost = asyncio.Event()  # a client went away while an answer hung

    @property
    def url(self) -> str:
        """Where the server listens."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def bodies(self) -> list[Json]:
        """The bodies of the requests."""
        return [request.body for request in self.requests]

    async def __aenter__(self) -> Loopback:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                if not await self._answer(self._reply(request), reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.lost.set()
        finally:
            writer.close()

    def _reply(self, request: Received) -> Reply:
        self.requests.append(request)
        if self._check and (found := problems(request.body)):
            self.refused.extend(found)
            return failing(400, "invalid_request_error", "; ".join(found))
        if callable(self._replies):
            return self._replies(request)
        if len(self.requests) > len(self._replies):
            self.refused.append(f"request {len(self.requests)} was not expected")
            return failing(400, "invalid_request_error", "the script is at its end")
        return self._replies[len(self.requests) - 1]

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Write *reply*; return whether the connection can take another request."""
        if not reply.silent:
            head = [f"HTTP/1.1 {reply.status} -", "transfer-encoding: chunked"]
            head += [f"{name}: {value}" for name, value in reply.headers]
            writer.write("\r\n".join([*head, "", ""]).encode())
            for piece in reply.pieces:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
        match reply.ending:
            case Ending.END:
                writer.write(b"0\r\n\r\n")
                await writer.drain()
                return True
            case Ending.CUT:
                await asyncio.sleep(0.01)  # let what was written arrive: an abort throws it away
                writer.transport.abort()
            case Ending.HANG:
                await reader.read(1)
                self.lost.set()
        return False


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    split = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in split}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, json.loads(raw) if raw else {})


# ---------------------------------------------------------------- what the API refuses


def problems(body: Json) -> list[str]:
    """Return what the API would find wrong with the form of a request; [] where it is sound."""
    if "messages" not in body:
        return []
    found: list[str] = []
    groups = _merged(body["messages"], found)
    if not groups or groups[0][0] != "user":
        found.append("the first message is not the user's")
    if groups and groups[-1][0] == "assistant" and not _paused(groups[-1][1]):
        found.append("the last message is the assistant's")
    open_calls: list[str] = []
    seen: set[str] = set()
    for role, content in groups:
        found += _empty(content)
        open_calls = _pairs(role, content, open_calls, seen, found)
    if open_calls:
        found.append(f"calls without a result: {open_calls}")
    tools = any(b["type"] in ("tool_use", "tool_result") for _, content in groups for b in content)
    if tools and not body.get("tools"):
        found.append("tool blocks, but no tools")
    return found


def _merged(messages: list[Json], found: list[str]) -> list[tuple[str, list[Json]]]:
    groups: list[tuple[str, list[Json]]] = []
    for number, message in enumerate(messages):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            found.append(f"message {number} is empty")
        if groups and groups[-1][0] == message["role"]:
            found.append(f"message {number} follows one of its own role")
            groups[-1][1].extend(blocks)
        else:
            groups.append((message["role"], list(blocks)))
    return groups


def _paused(content: list[Json]) -> bool:
    """Whether an answer can be sent back last: it ends in the server's own work."""
    last = content[-1]["type"] if content else ""
    return last in ("server_tool_use", "mcp_tool_use", "compaction") or last.endswith("_tool_result")


def _empty(content: list[Json]) -> list[str]:
    found = []
    for block in content:
        if block["type"] == "text" and not block["text"].strip():
            found.append("an empty text block")
        if block["type"] == "tool_use" and not isinstance(block["input"], dict):
            found.append(f"the input of {block['id']} is no object")
        if block["type"] == "tool_result":
            parts = block.get("content")
            found += _empty(parts) if isinstance(parts, list) else []
    return found


def _pairs(role: str, content: list[Json], calls: list[str], seen: set[str], found: list[str]) -> list[str]:
    """Check the results of *content* against the calls before it; return its own calls."""
    if role == "user":
        results = []
        for block in content:
            if block["type"] != "tool_result":
                break
            results.append(block["tool_use_id"])
        late = [b["tool_use_id"] for b in content[len(results) :] if b["type"] == "tool_result"]
        if late:
            found.append(f"results behind other blocks: {late}")
        if results != calls:
            found.append(f"results {results} do not answer the calls {calls}")
        return []
    if calls:
        found.append(f"calls without a result: {calls}")
    if content and content[-1]["type"] in ("thinking", "redacted_thinking"):
        found.append("thinking is the last block of an answer")
    mine = [block["id"] for block in content if block["type"] == "tool_use"]
    found += [f"the id {call} is used twice" for call in mine if call in seen]
    seen.update(mine)
    return mine
