"""How long a machine runs: a sample in the suite, the same each time, and a share of it where not every test
runs; as long as wanted in ``make stress``."""

from __future__ import annotations

import logging
import os
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from sampling import share

STEPS: Counter[str] = Counter()
"""Steps done, by machine."""


def run_machine(machine: Any, *, examples: int, steps: int = 30) -> None:
    """``SPECMUX_MODEL_FACTOR`` multiplies the examples, which are then drawn anew each time."""
    factor = float(os.environ.get("SPECMUX_MODEL_FACTOR", "0"))
    shrinks = os.environ.get("SPECMUX_MODEL_SHRINK", "1") == "1"
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)
    logging.disable(logging.CRITICAL)  # thousands of lines that nobody reads
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=max(1, round(examples * factor) if factor else share(examples)),
                stateful_step_count=steps,
                derandomize=not factor,
                database=None,
                deadline=None,
                phases=phases,
                print_blob=False,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
    except BaseException as error:
        error.add_note(f"after {sum(STEPS.values())} steps")
        raise
    finally:
        logging.disable(logging.NOTSET)
