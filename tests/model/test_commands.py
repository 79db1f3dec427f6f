"""Sequences of the program's commands in one home that was empty: each leaves every next command working.

What a command must do is what it does in a fresh home, or, for one that reads what another wrote, with what
was written: the same exit code, and never a word of a cache that cannot be used.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unittest import mock

import yaml
from click.testing import CliRunner, Result
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from data.compared import definition
from fakes.openapi_server import Reference, document
from fakes.openapi_thread import serving_in_thread
from model.depth import STEPS, run_machine
from specmux_aggregator.cli import main

USABLE: Final = ("using memory instead", "not a cache", "cannot be used", "Traceback", "is damaged")
"""None of these is said after commands alone."""

SCHEMA: Final = {"type": "object", "properties": {"size": {"type": "integer"}}}
OBJECT: Final = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
    "spec": {"size": 1},
}

COMMANDS: Final[dict[str, tuple[int, ...]]] = {
    "version": (0,),
    "completion bash": (0,),
    "init": (0, 2),
    "check-config": (0, 1, 2),
    "check {crds} --jobs 1": (0,),
    "check {crds} --jobs 1 --no-cache": (0,),
    "validate {object} --directory {crds}": (0,),
    "explain widget.spec --directory {crds}": (0,),
    "search size --directory {crds}": (0, 1),
    "diff {crds} {crds}": (0,),
    "schemas {out}/schemas --directory {crds}": (0,),
    "get --server {server}": (0,),
    "get v1 --server {server}": (0,),
    "get nope/v1 --server {server}": (1,),
    "get v1 --server {server} --offline": (0, 3),
    "check --server {server} --jobs 1": (0,),
    "merge --server {server}": (0,),
    "cache warm --server {server}": (0,),
    "cache paths --server {server}": (0,),
    "cache ls": (0,),
    "cache stats": (0,),
    "cache verify": (0,),
    "cache compact": (0,),
    "cache clear": (0,),
    "cache doctor": (0,),
    "cache export {out}.zip --server {server}": (0, 1),
}
"""What each may end with, in any home that other commands left behind."""


class World:
    """What is outside of the home: a server, a folder of definitions, an object."""

    def __init__(self, folder: Path, server: str) -> None:
        self.crds = folder / "crds"
        self.crds.mkdir()
        (self.crds / "widgets.yaml").write_text(yaml.safe_dump(definition(SCHEMA)))
        self.object = folder / "object.yaml"
        self.object.write_text(json.dumps(OBJECT))
        self.server = server


def machine_of(world: World) -> Callable[[], RuleBasedStateMachine]:
    class CommandMachine(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.home = Path(tempfile.mkdtemp(prefix="home-model-"))

        def teardown(self) -> None:
            if not hasattr(self, "home"):
                return
            try:
                for command in ("cache doctor", "get v1 --server {server}", "cache verify", "cache ls"):
                    self.run(command)
                found = self._call("get v1 --server {server} --offline")
                assert found.exit_code == 0, "what was fetched is not in the cache"
            finally:
                shutil.rmtree(self.home)

        @rule(command=st.sampled_from(sorted(COMMANDS)))
        def run(self, command: str) -> None:
            result = self._call(command)
            said = f"{command}: exit code {result.exit_code}\n{result.output[-2000:]}"
            assert result.exception is None or isinstance(result.exception, SystemExit), repr(
                result.exception
            )
            assert result.exit_code in COMMANDS[command], said
            assert not any(words in result.stderr for words in USABLE), said

        @invariant()
        def count(self) -> None:
            STEPS["commands"] += 1

        def _call(self, command: str) -> Result:
            values: dict[str, Any] = {"out": self.home / "out", "crds": world.crds}
            words = command.format(**values, object=world.object, server=world.server).split()
            environment = {
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("SPECMUX", "XDG", "KUBE"))
            }
            here = Path.cwd()
            with mock.patch.dict(os.environ, {**environment, "HOME": str(self.home)}, clear=True):
                os.chdir(self.home)
                try:
                    return CliRunner().invoke(main, words)
                finally:
                    os.chdir(here)

    return CommandMachine


def test_every_sequence_of_commands_leaves_the_next_one_working(tmp_path: Path) -> None:
    documents = {"api/v1": document("core"), "apis/apps/v1": document("apps")}
    with serving_in_thread(Reference(documents)) as server:
        run_machine(machine_of(World(tmp_path, server.url)), examples=6, steps=8)
