"""The package's logger, for warnings that the caller does not handle."""

import logging
from typing import Final

logger: Final = logging.getLogger("specmux_cache")
