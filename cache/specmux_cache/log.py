"""The package's logger: what warnings go to that a caller wants nowhere else."""

import logging
from typing import Final

logger: Final = logging.getLogger("specmux_cache")
