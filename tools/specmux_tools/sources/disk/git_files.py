"""Files of a revision of a git repository, read by git itself: ``git:REV:PATH``.

PATH is relative to the current folder, as everywhere in git. Nothing of a revision or a path reaches a shell,
and neither can be taken for an option. What is read is what the working tree of that revision would have:
links are followed, hidden folders are skipped; what git does not have of it is refused or named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from specmux_aggregator.console import warn
from specmux_aggregator.folders import is_document_name, is_hidden
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.errors import cut
from specmux_tools.sources.options import GIT
from specmux_tools.sources.source import FileRefused

_SECONDS: Final = 60.0
_LINK: Final = "120000"
"""The mode of a symbolic link in a tree."""


class _Object(NamedTuple):
    """``kind``: git's own (blob, tree), or missing, dangling, symlink (out of the revision), loop, notdir."""

    kind: str
    id: str = ""
    data: bytes = b""


def git_files(word: str) -> dict[str, bytes] | None:
    """The file that ``git:REV:PATH`` names, or all documents below the folder that it names, by their paths.

    None where the revision does not have the path. Raises FileRefused.
    """
    revision, colon, path = word.removeprefix(GIT).partition(":")
    if not colon or not revision or revision.startswith("-"):
        raise FileRefused(word, 'must be written as git:REV:PATH, such as "git:main:crds/"')
    asked = _run_git(word, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit = asked.decode().strip()
    folder = f"{commit}:./{path.rstrip('/')}"
    here, from_root = _objects(word, [folder, f"{commit}:{path.strip('/')}"])
    if here.kind == "blob":
        return {word: _check_size(word, here.data)}
    if here.kind == "tree":
        return _documents(word, here.id, folder.rstrip("/"))
    if here.kind != "missing":
        raise FileRefused(word, "a link that leads out of the revision")
    if from_root.kind != "missing":
        # Taken as a path that is not there, it would be compared with nothing.
        raise FileRefused(
            word, "not in the current folder, to which PATH is relative; the repository's root has it"
        )
    return None


def _documents(word: str, tree: str, folder: str) -> dict[str, bytes]:
    # Without --full-tree git lists only what lies below a folder of the current one's name.
    listed = _run_git(word, "ls-tree", "-r", "-z", "--full-tree", tree).decode("utf-8", "surrogateescape")
    wanted: dict[str, str] = {}
    for entry in filter(None, listed.split("\0")):
        about, _, name = entry.partition("\t")
        mode, kind, id = about.split()
        if any(map(is_hidden, name.split("/")[:-1])):
            continue
        if kind == "commit":
            warn(f"{cut(word)}: {cut(name)} is a submodule, whose files this repository does not have")
        elif is_document_name(name):
            wanted[name] = f"{folder}/{name}" if mode == _LINK else id
    names = sorted(wanted)
    found = dict(zip(names, _objects(word, [wanted[name] for name in names]), strict=True))
    for name, each in found.items():
        if each.kind not in {"blob", "tree", "dangling"}:
            raise FileRefused(word, f"{cut(name)}: a link that leads out of the revision")
    # Links to folders, and to nothing, are skipped in a working tree, too.
    documents = {name: _check_size(name, each.data) for name, each in found.items() if each.kind == "blob"}
    if not documents:
        raise FileRefused(word, "no document in it")
    return documents


def _check_size(name: str, data: bytes) -> bytes:
    if len(data) > DEFAULT_LIMITS.max_bytes:
        raise FileRefused(name, f"more than {DEFAULT_LIMITS.max_bytes} bytes")
    return data


def _objects(word: str, names: Sequence[str]) -> list[_Object]:
    """The objects that git has under each name, links followed."""
    if any("\n" in name for name in names):
        raise FileRefused(word, "a path with a line break cannot be read from a revision")
    asked = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
    objects = list(_parse_objects(_run_git(word, "cat-file", "--batch", "--follow-symlinks", asked=asked)))
    if len(objects) != len(names):
        raise FileRefused(word, "git did not answer for every file; is the repository complete?")
    return objects


def _parse_objects(answer: bytes) -> Iterator[_Object]:
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        head = answer[at:end].decode("utf-8", "surrogateescape")
        at = end + 1
        if head.endswith((" missing", " ambiguous")):
            yield _Object("missing")
            continue
        *id, kind, size = head.split(" ")
        yield _Object(kind, " ".join(id), answer[at : at + int(size)])
        at += int(size) + 1


def _run_git(word: str, *arguments: str, asked: bytes = b"") -> bytes:
    import subprocess  # few commands read a revision

    try:
        done = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            input=asked,
        )
    except FileNotFoundError as error:
        raise FileRefused(word, "git is not installed") from error
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:
        raise FileRefused(word, f"git could not be asked: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() or "no such revision here"
        raise FileRefused(word, cut(said.splitlines()[0]))
    return done.stdout
