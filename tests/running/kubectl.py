"""kubectl of this machine, and one user's runs of it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

from deadline import DEADLINE


def installed() -> list[Path]:
    """kubectl of this machine, newest last. A cloud SDK has several, behind one that asks for a server's
    version first and then calls another."""
    found = shutil.which("kubectl")
    if found is None:
        return []
    beside = Path(found).resolve().parent.glob("kubectl.1.*")
    return sorted(beside, key=lambda path: int(path.name.rpartition(".")[2])) or [Path(found)]


KUBECTLS = installed()


class Kubectl:
    """One user's kubectl, with a home and caches of its own. ``options`` go before every run's arguments."""

    def __init__(self, *options: str, home: Path, program: Path) -> None:
        self._options = options
        self._home = home
        self._program = program

    async def __call__(self, *arguments: str, given: str = "") -> tuple[int, str, str]:
        """Exit code, output, errors."""
        command = [str(self._program), *self._options, f"--cache-dir={self._home}/cache", *arguments]
        environment = {"HOME": str(self._home), "KUBECONFIG": "/dev/null", "PATH": "/usr/bin:/bin"}

        def run() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command,
                input=given,
                capture_output=True,
                text=True,
                timeout=DEADLINE,
                env=environment,
                check=False,
            )

        done = await asyncio.to_thread(run)
        return done.returncode, done.stdout, done.stderr

    async def good(self, *arguments: str, given: str = "") -> str:
        code, output, errors = await self(*arguments, given=given)
        assert code == 0, (output, errors)
        assert errors == ""
        return output
