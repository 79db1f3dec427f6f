"""Requests that parsers read differently, through nginx, HAProxy and Varnish: none may become two.

    python tests/stress/stress_chains.py [--payloads 100000] [--first SEED] [--front nginx]

Each payload is a connection's worth of bytes: pipelined requests with lengths and codings that contradict
each other, folded fields, bare line feeds, chunk extensions, absolute targets, and requests hidden in bodies.
The front writes into each request what only it knows, so one without it was never a request to the front. In
its answer it names the target that it took the request for; ours names the one that we did. After each
payload another client asks for something. Exits with 1 and the seeds where the two disagree.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from running.fronts import SECRET, in_front, program
from running.serving import FakeService
from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, prepare
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.server.protocols import Pending

FRONTS: Final = ("nginx", "haproxy", "varnishd")
CLIENTS: Final = 24
QUIET: Final = 0.3
"""Seconds without a byte after which a client gives up: the front waits for the rest of a body."""
PATIENT: Final = 5.0
"""The same for a whole request, on a machine that is busy."""
DEADLINE: Final = 20.0

# The first of each is what everybody sends.
METHODS: Final = ("POST", "GET", "GET", "HEAD", "PUT", "OPTIONS")
TARGETS: Final = ("{}", "/unbuffered{}", "http://a{}", "http://b:80{}?q", "{}?q=/hidden", "/{}")
VERSIONS: Final = ("HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ")
ENDS: Final = ("\r\n", "\n", "\r\n\t", "\r", "\r\r\n")
NAMES: Final = ("{}: ", "{}:", "{} : ", " {}: ", "{}\t:", "{}:\r\n ", "\0{}: ", "X: y\n{}: ", "X: y\r{}: ")
CODINGS: Final = (
    "chunked",
    "Chunked",
    "chunked ",
    " chunked\t",
    "\x0bchunked",
    "identity",
    "gzip, chunked",
    "chunked, chunked",
    "chunked, identity",
    "chunked;q=1",
    '"chunked"',
    "xchunked",
    ", chunked",
    "chunked,",
    "\r\n chunked",
)
LENGTHS: Final = (
    "{}",
    "+{}",
    "0{}",
    "{}, {}",
    "{} ",
    "\t{}",
    "-{}",
    "{}.0",
    "0x{}",
    "{}\x0b",
    '"{}"',
    "",
)
EXTRA: Final = (
    "X: y",
    "X: 1\r\n 2",
    "Host: b",
    "Connection: close",
    "Connection: Content-Length",
    "Connection: Transfer-Encoding, keep-alive",
    "Expect: 100-continue",
    "Upgrade: h2c",
    "Content_Length: 3",
    "Transfer_Encoding: chunked",
    "X: " + "y" * 2_000,
    "TE: trailers",
    "Trailer: Content-Length",
    "X\xa0: y",
    ": y",
    "X",
)
SIZES: Final = (
    "{:x}",
    "{:X}",
    "0{:x}",
    "{:x} ",
    " {:x}",
    "0x{:x}",
    "+{:x}",
    "{:x};a=b",
    "{:x};a",
    '{:x}\t;a="\r\n"',
    "{:x};\n",
    "ffffffff{:08x}",
    "1000000000000000{:x}",
    "{:x}_",
    "-{:x}",
    "",
)
LAST: Final = ("0", "00", "0;a=b", "0 ")
TRAILERS: Final = ("", "X: y\r\n", "Content-Length: 5\r\n", "GET /hidden HTTP/1.1\r\n")
ODD: Final = (0.02, 0.06, 0.2)
"""How often a payload has something else than what everybody sends."""

T = TypeVar("T")


class Chance(random.Random):
    odd: float = 0.0

    def pick(self, options: Sequence[T]) -> T:
        """The first, or now and then any."""
        return self.choice(options) if self.random() < self.odd else options[0]


def payload(seed: int) -> bytes:
    """The bytes of one connection. One seed, one payload."""
    chance = Chance(seed)
    chance.odd = chance.choice(ODD)
    requests = [_request(chance, f"{seed}.{number}") for number in range(chance.choice((1, 1, 2, 3)))]
    return b"".join(requests) + _plain(f"/{seed}.end", "Connection: close")


def _plain(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *fields, "", ""]).encode()


def _request(chance: Chance, name: str) -> bytes:
    hidden = _plain(f"/hidden.{name}")
    is_chunked = chance.randrange(2) == 0
    body = _chunks(chance, hidden) if chance.pick((is_chunked, not is_chunked)) else hidden
    fields = [*chance.pick((["Host: a"], []))]
    for _ in range(chance.pick((int(not is_chunked), int(is_chunked), 2))):
        length = chance.pick((len(body), 0, len(hidden), 3, len(body) - 1, len(body) + 5))
        fields.append(_field(chance, "Content-Length", chance.pick(LENGTHS).replace("{}", str(length))))
    for _ in range(chance.pick((int(is_chunked), int(not is_chunked), 2))):
        fields.append(_field(chance, "Transfer-Encoding", chance.pick(CODINGS)))
    fields += chance.sample(EXTRA, chance.pick((0, 1, 2)))
    chance.shuffle(fields)
    target = chance.pick(TARGETS).replace("{}", f"/{name}")
    lines = [f"{chance.pick(METHODS)} {target} {chance.pick(VERSIONS)}", *fields, ""]
    return "".join(line + chance.pick(ENDS) for line in lines).encode("latin-1") + body


def _field(chance: Chance, name: str, value: str) -> str:
    shown = chance.pick((name, name.lower(), name.upper(), name.replace("-", "_")))
    return chance.pick(NAMES).replace("{}", shown) + value


def _chunks(chance: Chance, content: bytes) -> bytes:
    """The content in chunks; it may stand behind the last one."""
    first = chance.pick(SIZES).format(len(content)) + chance.pick(ENDS)
    last = (
        chance.pick(ENDS) + chance.pick(LAST) + chance.pick(ENDS) + chance.pick(TRAILERS) + chance.pick(ENDS)
    )
    if chance.pick((False, True)):
        return last.lstrip().encode("latin-1") + content
    return first.encode("latin-1") + content + last.encode("latin-1")


class Echo(FakeService):
    """Says which path it took a request for, and keeps those that no front has sent."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.foreign: list[str] = []

    def immediate(self, request: Request) -> PreparedAnswer | Pending:
        self.count += 1
        if request.accept != SECRET:
            self.foreign.append(f"{request.method} {request.path}")
        fields = [("Content-Type", "text/plain"), ("X-Path", request.path)]
        answer = prepare(200, fields, f"at {request.path}\n".encode(), is_head=request.method == "HEAD")
        return replace(answer, good_until=None)


@dataclass
class Findings:
    """What came of one front."""

    answers: Counter[str] = field(default_factory=Counter)
    """By status."""
    requests: int = 0
    unanswered: int = 0
    """Clients after a payload that had no answer in time, or the front's own."""
    wrong: list[str] = field(default_factory=list)


_HEAD: Final = re.compile(rb"HTTP/1\.[01] (\d{3})[^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")


def take_answers(found: Findings, received: bytes, seed: int, *, path: str | None = None) -> None:
    """Each answer must be that of the request that the front took. ``path``: the only one asked for."""
    heads = list(_HEAD.finditer(received))
    found.unanswered += path is not None and [head[1] for head in heads] != [b"200"]
    ends = [*(head.start() for head in heads[1:]), len(received)]
    for head, end in zip(heads, ends, strict=False):
        found.answers[head[1].decode()] += 1
        fields = dict(line.split(b": ", 1) for line in head[2].lower().split(b"\r\n") if b": " in line)
        ours = fields.get(b"x-path")
        if ours is None:
            continue  # the front's own
        target = re.sub(rb"^http://[^/]*", b"", fields.get(b"x-target", b"")).partition(b"?")[0]
        body = received[head.end() : end].strip()
        if target != ours or (body and body.lower() != b"at " + ours) or (path and ours != path.encode()):
            found.wrong.append(f"{seed}: {target!r} has the answer of {ours!r}, {body!r}")


async def run(front: str, seeds: range, folder: Path) -> Findings:
    """Send the payload of each seed through a front."""
    service, found, left = Echo(), Findings(), iter(seeds)
    server = HTTPServer(service, ListenSettings(port=0, shutdown_timeout=1.0))
    _, behind = await server.start()
    try:
        async with in_front(front, behind, folder) as port:

            async def client() -> None:
                for seed in left:
                    take_answers(found, await exchange(port, payload(seed)), seed)
                    path = f"/canary.{seed}"
                    received = await exchange(port, _plain(path, "Connection: close"), PATIENT)
                    take_answers(found, received, seed, path=path)

            async with asyncio.TaskGroup() as clients:
                for _ in range(CLIENTS):
                    clients.create_task(client())
    finally:
        await server.stop()
    found.requests = service.count
    found.wrong += [f"{each}: not from the front" for each in service.foreign]
    return found


async def exchange(port: int, data: bytes, quiet: float = QUIET) -> bytes:
    """What comes back until the front closes, or says nothing more."""
    received = bytearray()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(DEADLINE):
            writer.write(data)
            while chunk := await asyncio.wait_for(reader.read(1 << 16), quiet if received else 4 * quiet):
                received += chunk
    except (TimeoutError, ConnectionError):
        pass  # what came until then is judged
    finally:
        writer.close()
    return bytes(received)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payloads", type=int, default=100_000, help="in all")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--front", choices=FRONTS)
    options = parser.parse_args()
    fronts = [each for each in FRONTS if options.front in (None, each) and program(each) is not None]
    if not fronts:
        sys.exit("no front is installed: apt-get install nginx-light haproxy varnish")
    each, wrong = -(-options.payloads // len(fronts)), 0
    for number, front in enumerate(fronts):
        first = options.first + number * each
        with tempfile.TemporaryDirectory() as folder:
            found = asyncio.run(run(front, range(first, first + each), Path(folder)))
        statuses = ", ".join(f"{count} × {status}" for status, count in sorted(found.answers.items()))
        print(f"{front}: {each} payloads, {found.requests} requests arrived, answers: {statuses}", flush=True)
        print(
            f"{front}: {len(found.wrong)} wrong, {found.unanswered} of the others had no answer", flush=True
        )
        print(*found.wrong[:20], sep="\n", flush=True)
        wrong += len(found.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
