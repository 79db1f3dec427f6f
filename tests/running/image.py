"""The image's files, gathered as the Dockerfile does it, and a process inside them as a container runs it."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from running.namespaces import own_mounts

REPOSITORY = Path(__file__).resolve().parents[2]
GATHER = REPOSITORY / "container" / "image_root.py"
ENVIRONMENT = "/opt/specmux"
"""Where the Dockerfile has it."""

CONTAIN = """
set -e
root=$1 config=$2 volume=$3 shm=$4 mounts=$5
shift 5
if [ -z "$mounts" ]; then
    mount --bind "$root" "$root"
else
    mount -t tmpfs upper /mnt
    mkdir /mnt/upper /mnt/work
    mount -t overlay -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work" image "$root"
fi
mount --bind "$config" "$root/etc/specmux"
[ -z "$volume" ] || mount --bind "$volume" "$root/var/cache/specmux"
while [ -n "$mounts" ]; do
    line=${mounts%%:*} mounts=${mounts#*:}
    from=${line%=*} place=$root${line#*=}
    [ -d "$from" ] && mkdir -p "$place" || { mkdir -p "${place%/*}"; touch "$place"; }
    mount --bind "$from" "$place"
done
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm"
[ -z "$shm" ] || mount -t tmpfs -o mode=1777,size=64m shm "$root/dev/shm"
mount -o remount,bind,ro "$root"
mount -o remount,ro "$root/dev"
exec "$@"
"""
"""What a container engine does before it starts the process."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One of a Dockerfile."""

    name: str
    text: str
    stage: int
    """Counts the FROM lines; 0 is before the first."""


def instructions() -> list[Instruction]:
    text = re.sub(r"\\\n", " ", (REPOSITORY / "Dockerfile").read_text())
    found: list[Instruction] = []
    stage = 0
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        found.append(Instruction(name, " ".join(rest.split()), stage))
    return found


def environment() -> dict[str, str]:
    """What the last stage sets."""
    last = max(item.stage for item in instructions())
    lines = [item.text for item in instructions() if item.stage == last and item.name == "ENV"]
    return dict(pair.split("=", 1) for line in lines for pair in shlex.split(line))


@dataclass(frozen=True, slots=True)
class ImageRoot:
    """The gathered files."""

    path: Path
    environment: Path
    """Inside and outside: the environment that was gathered."""

    def inside(
        self,
        *,
        config: Path,
        volume: Path | None = None,
        shm: bool = True,
        mounts: Mapping[str, Path] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """The command that runs another one in here: root read-only, uid 65532, no privileges. ``mounts``: by
        place, beside the image's own mount points; ``variables``: beside the image's own."""
        with_mounts = own_mounts()
        assert with_mounts is not None
        own = {
            name: value.replace(ENVIRONMENT, str(self.environment)) for name, value in environment().items()
        }
        further = "".join(f"{source}={place}:" for place, source in (mounts or {}).items())
        places = (str(self.path), str(config), str(volume or ""), "yes" if shm else "", further)
        return (
            *with_mounts,
            *("sh", "-c", CONTAIN, "contain", *places),
            *(
                "setpriv",
                "--no-new-privs",
                "--inh-caps=-all",
                "--bounding-set=-all,+setuid,+setgid,+sys_chroot",
            ),
            *("env", "-i", *(f"{name}={value}" for name, value in {**own, **(variables or {})}.items())),
            *("/usr/sbin/chroot", "--userspec=65532:65532", "--groups=65532", str(self.path)),
        )


def gathered(factory: pytest.TempPathFactory) -> ImageRoot:
    """Gathered once for all test processes."""
    if os.geteuid() != 0 or own_mounts() is None:
        pytest.skip("only root can run a process in the files of an image")
    base = factory.getbasetemp()
    # Where several processes run the tests, each has a folder of its own beside the others'.
    shared = base.parent if base.name.startswith("popen-") else base
    found = ImageRoot(shared / "image", shared / "environment")
    with (shared / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "image.done").exists():
            _gather(found, shared / "wheel")
            (shared / "image.done").touch()
    return found


def _gather(image: ImageRoot, wheels: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    _run(*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(REPOSITORY))
    (wheel,) = wheels.glob("specmux-*.whl")
    venv.create(image.environment, symlinks=True, with_pip=False)
    python = str(image.environment / "bin" / "python")
    _run(*pip, "--python", python, "install", "--no-compile", "--only-binary", ":all:", str(wheel))
    _run(python, str(GATHER), str(image.environment), str(image.path))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
