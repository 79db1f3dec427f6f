"""Run http-tests/cache-tests (npm package http-cache-tests) against the client library and its peer.

    python tests/conformance/cache_tests/run.py [--library specmux --library hishel] [--json]

Prints, per group, how many of the tests that every private cache must pass were passed. Exits 0 when npm is
absent, and says so; 1 when specmux fails a test of the promised groups that ``EXCEPTIONS`` does not explain.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from shim import Hishel, Shim, Specmux

PACKAGE = "http-cache-tests@0.4.5"
LIBRARIES = {"specmux": Specmux, "hishel": Hishel}
HERE = Path(__file__).parent
GROUPS = {
    "conditional-etag": ("conditional-etag", "conditional-304-etag"),
    "304-etag-update": ("304-",),
    "vary": ("vary-",),
    "cc-resp-no-store/no-cache": ("cc-resp-no-store", "cc-resp-no-cache"),
    "freshness-max-age": ("freshness-max-age",),
    "expires": ("freshness-expires",),
    "stale": ("stale-",),
}
"""The groups that the library promises, by how the names of their tests begin."""
SHARED = ("freshness-s-maxage-shared", "freshness-max-age-s-maxage-shared", "cc-resp-private-shared")
"""Tests of shared caches."""

EXCEPTIONS = {
    "304-etag-update-response-Content-Length": "its first answer has a Content-Length that its body does not",
    "304-etag-update-response-Content-Type": "no 304 changes what describes the body; of the 10 caches"
    " whose results the suite ships 2 pass",
    "304-etag-update-response-ETag": "a 304 with another strong ETag is about another representation"
    " (RFC 9111 4.3.4): the library asks again without conditions, which the suite counts as a retry",
    "304-etag-update-response-Set-Cookie": "cookies are never kept",
    "304-etag-update-response-Set-Cookie2": "cookies are never kept",
    "stale-close-must-revalidate": "asks for a header of the server's after the server closed the connection",
    "stale-close-no-cache": "as stale-close-must-revalidate: none of the suite's 10 results pass",
    "stale-close-proxy-revalidate": "as stale-close-must-revalidate",
    "stale-close-s-maxage=2": "as stale-close-must-revalidate",
}
"""Tests of the promised groups that mean nothing here, and why; docs/client.md has them, too."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", action="append", choices=sorted(LIBRARIES))
    parser.add_argument("--json", action="store_true", help="every test, with the reason where it failed")
    options = parser.parse_args()
    if shutil.which("npm") is None or shutil.which("node") is None:
        print("skipped: npm is not installed")
        return 0
    with tempfile.TemporaryDirectory(prefix="cache-tests-") as directory:
        root = Path(directory)
        suite = install(root)
        results = {name: asyncio.run(run(suite, root, name)) for name in options.library or ["specmux"]}
        required = required_tests(suite)
    if options.json:
        print(
            json.dumps(
                {name: {test: found[test] for test in required} for name, found in results.items()}, indent=1
            )
        )
    else:
        report(results, required)
    unexplained = failures(results.get("specmux", {}), promised_tests(required)) - set(EXCEPTIONS)
    if unexplained and "specmux" in results:
        print(f"not explained: {', '.join(sorted(unexplained))}", file=sys.stderr)
        return 1
    return 0


def install(root: Path) -> Path:
    """The suite's directory."""
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
    subprocess.run(command, cwd=root, check=True, stdout=sys.stderr)
    return root / "node_modules" / "http-cache-tests"


def required_tests(suite: Path) -> list[str]:
    """Names of the tests without which a cache is wrong: not those of optimal behaviour, nor mere
    questions."""
    script = (
        "import tests from './tests/index.mjs';"
        "console.log(JSON.stringify(tests.flatMap(s => s.tests)"
        ".filter(t => (t.kind ?? 'required') === 'required' && !t.browser_only).map(t => t.id)))"
    )
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script], cwd=suite, check=True, capture_output=True, text=True
    )
    return sorted(json.loads(done.stdout))


async def run(suite: Path, root: Path, name: str) -> dict[str, Any]:
    """Test -> True, or [kind of failure, message]."""
    port = free_port()
    upstream = f"http://127.0.0.1:{port}"
    settings = {"npm_config_protocol": "http", "npm_config_port": str(port), "npm_package_config_id": ""}
    environment = {**os.environ, **settings, "npm_config_pidfile": str(root / "server.pid")}
    # The suite's server listens on every interface; the preloaded script has it listen on loopback.
    server = await asyncio.create_subprocess_exec(
        "node", "--require", str(HERE / "loopback.cjs"), "server/server.mjs", cwd=suite, env=environment,
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    shim = Shim(upstream, LIBRARIES[name](upstream, root / name))
    try:
        await until_listening(port)
        base = await shim.start()
        client = await asyncio.create_subprocess_exec(
            "node", "--no-warnings", "cli.mjs", cwd=suite, env={**environment, "npm_config_base": base},
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await asyncio.wait_for(client.communicate(), 300)
        found: dict[str, Any] = json.loads(output[output.index(b"{") :])
        return found
    finally:
        server.terminate()
        await server.wait()
        await shim.stop()


def report(results: dict[str, dict[str, Any]], required: list[str]) -> None:
    private = private_tests(required)
    rows = {name: [test for test in private if test.startswith(begun)] for name, begun in GROUPS.items()}
    promised = promised_tests(required)
    meant = [test for test in promised if test not in EXCEPTIONS]
    rows |= {"these groups": promised, "... but EXCEPTIONS": meant, "all, private": private, "all": required}
    print(f"{'group':28}" + "".join(f"{name:>16}" for name in results))
    for group, tests in rows.items():
        print(f"{group:28}" + "".join(f"{score(found, tests):>16}" for found in results.values()))
    for name, found in results.items():
        print(f"\n{name} does not pass: {', '.join(sorted(failures(found, private)))}")


def private_tests(required: list[str]) -> list[str]:
    return [test for test in required if not test.startswith(SHARED)]


def promised_tests(required: list[str]) -> list[str]:
    named = tuple(begun for group in GROUPS.values() for begun in group)
    return [test for test in private_tests(required) if test.startswith(named)]


def failures(found: dict[str, Any], tests: list[str]) -> set[str]:
    return {test for test in tests if found.get(test) is not True}


def score(found: dict[str, Any], tests: list[str]) -> str:
    return f"{len(tests) - len(failures(found, tests))} of {len(tests)}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def until_listening(port: int) -> None:
    for _ in range(100):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise RuntimeError("the suite's server did not start")


if __name__ == "__main__":
    sys.exit(main())
