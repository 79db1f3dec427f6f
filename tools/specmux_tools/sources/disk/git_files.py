"""Files of a revision of a git repository, read by git itself: ``git:REV:PATH``.

Nothing of a revision or a path reaches a shell, and neither can be taken for an option.
"""

from __future__ import annotations

from typing import Final

from specmux_aggregator.workers.file_names import is_document_name
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.errors import cut
from specmux_tools.sources.disk.document_files import FileRefused

PREFIX: Final = "git:"
_SECONDS: Final = 60.0


def git_files(word: str) -> dict[str, bytes] | None:
    """The file that ``git:REV:PATH`` names, or all documents below the folder that it names, by their paths.

    None where the revision does not have the path. Raises FileRefused.
    """
    revision, colon, path = word.removeprefix(PREFIX).partition(":")
    if not colon or not revision or revision.startswith("-"):
        raise FileRefused(word, 'must be written as git:REV:PATH, such as "git:main:crds/"')
    commit = _run(word, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    name = commit.decode().strip()
    if not _run(word, "ls-tree", "-z", "--name-only", name, "--", path.rstrip("/") or "."):
        return None
    found = f"{name}:./{path}" if path else f"{name}:./"
    kind = _run(word, "cat-file", "-t", found).decode().strip()
    if kind == "blob":
        return {word: _run(word, "cat-file", "blob", found)}
    listed = _run(word, "ls-tree", "-r", "-z", "--name-only", found).decode("utf-8", "surrogateescape")
    names = [each for each in listed.split("\0") if each and is_document_name(each)]
    if not names:
        raise FileRefused(word, "no documents in it")
    return {each: _run(word, "cat-file", "blob", f"{found.rstrip('/')}/{each}") for each in sorted(names)}


def _run(word: str, *arguments: str) -> bytes:
    import subprocess  # few commands read a revision

    try:
        done = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise FileRefused(word, "git is not installed") from error
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:
        raise FileRefused(word, f"git could not be asked: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() or "no such revision here"
        raise FileRefused(word, cut(said.splitlines()[0]))
    if len(done.stdout) > DEFAULT_LIMITS.max_bytes:
        raise FileRefused(word, f"more than {DEFAULT_LIMITS.max_bytes} bytes")
    return done.stdout
