"""Ten thousand exchanges with backends that misframe at random: none may get another's answer.

.venv/bin/python tests/stress/stress_exchanges.py [--exchanges N]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).parents[1]))

from running.exchanges import by_session, by_transport, exchanges_that_went_wrong
from specmux_aggregator.upstream.connections.connector import CheckedConnector


async def main(count: int) -> int:
    aiohttps_own = by_session(aiohttp.TCPConnector)
    before, _ = await exchanges_that_went_wrong(count // 10, aiohttps_own, patience=0.1)
    print(f"aiohttp's own connector: {count // 10}, answers of another request: {len(before)}")
    all_wrong = 0
    for name, asking in (("a session", by_session(CheckedConnector)), ("documents", by_transport)):
        wrong, strays = await exchanges_that_went_wrong(count, asking)
        all_wrong += len(wrong)
        print(f"{name}: exchanges: {count}, strays: {strays}, answers of another request: {len(wrong)}")
    return bool(all_wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exchanges", type=int, default=10_000)
    sys.exit(asyncio.run(main(parser.parse_args().exchanges)))
