"""Random streams of requests against every tier of the server: none may answer as the others do not.

.venv/bin/python tests/stress/stress_tiers.py [--streams N] [--first SEED]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.test_http_streams import differences

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    found, refused = asyncio.run(differences(given.first, given.streams))
    print(f"streams: {given.streams}, refused at some point: {refused}, answered differently: {len(found)}")
    print("seeds:", *found[:20])
    sys.exit(bool(found))
