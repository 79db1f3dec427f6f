"""Run the model's machines (``tests/model``) with new seeds until the time is over, and count their steps.

    python tests/stress/stress_model.py [--seconds 60] [--machine service]

``--seconds 28800`` is a night: more than a million steps. Exits with 1 and the sequence that fails.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from fakes.openapi_server import Reference, document  # noqa: E402
from fakes.openapi_thread import serving_in_thread  # noqa: E402
from model.depth import STEPS, run_machine  # noqa: E402
from model.test_commands import World, machine_of  # noqa: E402
from model.test_service import ServiceMachine  # noqa: E402
from model.test_store import StoreMachine  # noqa: E402
from model.test_streams import StreamMachine  # noqa: E402

SHARES: Final = {"service": 5, "streams": 2, "store": 2, "commands": 1}
"""Parts of the time."""
ROUND: Final = {"service": 25, "streams": 200, "store": 20, "commands": 4}
"""Examples between two looks at the clock."""


@contextlib.contextmanager
def machines() -> Iterator[dict[str, Callable[[], Any]]]:
    reference = Reference({"api/v1": document("core"), "apis/apps/v1": document("apps")})
    with serving_in_thread(reference) as server, tempfile.TemporaryDirectory() as folder:
        commands = machine_of(World(Path(folder), server.url))
        yield {
            "service": ServiceMachine,
            "streams": StreamMachine,
            "store": StoreMachine,
            "commands": commands,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--machine", choices=sorted(SHARES))
    options = parser.parse_args()
    os.environ.setdefault("SPECMUX_MODEL_FACTOR", "1")
    chosen = [options.machine] if options.machine else list(SHARES)
    total = sum(SHARES[name] for name in chosen)
    with machines() as made:
        for name in chosen:
            until = time.monotonic() + options.seconds * SHARES[name] / total
            while time.monotonic() < until:
                run_machine(made[name], examples=ROUND[name])
            print(f"{name}: {STEPS[name]} steps", flush=True)
    print(f"{sum(STEPS.values())} steps, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
