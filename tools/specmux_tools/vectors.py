"""Recorded answers of Kubernetes' code (``vectors/``), put to any command by standard input and output.

A command gets each case as one line of JSON, its standard input ends after the last, and its answers may come
in any order: a command may read all before it answers. What it does not answer is not tested.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import orjson

from specmux_aggregator.errors import SourceError, SourceUnreachable
from specmux_converters.errors import cut
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.reports import Case, FindingReport, Level, ReportFinding, Suite, Where

ANSWERING: Final = 3600.0
"""Seconds for all answers of a command."""
_RULES: Final = {
    "differs": "the answer is that of Kubernetes' code",
    "known": "the answer differs, for a reason that the vectors tell",
    "unanswered": "every case is answered",
}


@dataclass(frozen=True, slots=True)
class Vector:
    id: str
    task: str
    release: str
    input: Mapping[str, Any]
    verdict: str
    output: Any = None
    """Compared where the verdict is "valid" and there is one."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons of known disagreements, by implementation."""


@dataclass(frozen=True, slots=True)
class VectorSet:
    name: str
    judge: str
    vectors: tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class JudgedVector:
    """``answer``: in words; empty: none. ``reason``: why none, or why it is known to differ."""

    vector: Vector
    is_equal: bool = False
    answer: str = ""
    reason: str = ""

    @property
    def is_different(self) -> bool:
        return bool(self.answer) and not self.is_equal and not self.reason


def read_vectors(data: bytes, name: str) -> VectorSet:
    """Raises SourceError for what is no file of vectors."""
    try:
        found = orjson.loads(data)
        schemas, common = found.get("schemas", {}), {"task": found["task"], "release": found.get("release")}
        vectors = tuple(_read_vector({**common, **case}, schemas) for case in found["cases"])
        return VectorSet(found["name"], found["judge"], vectors)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{name}: no file of vectors: {error}") from error


def _read_vector(case: Mapping[str, Any], schemas: Mapping[str, Any]) -> Vector:
    asked = dict(case["input"])
    if isinstance(asked.get("schema"), str):
        asked["schema"] = schemas[asked["schema"]]
    reasons = {each["implementation"]: each["reason"] for each in case.get("disagreements", ())}
    return Vector(
        case["id"], case["task"], case["release"], asked, case["verdict"], case.get("output"), reasons
    )


def answers_of(command: Sequence[str], vectors: Iterator[Vector]) -> dict[str, dict[str, Any]]:
    """The answers by id. Raises SourceUnreachable for a command that does not start, fails, or says what is
    no answer."""
    asked = b"".join(
        orjson.dumps({"id": each.id, "task": each.task, "release": each.release, "input": each.input}) + b"\n"
        for each in vectors
    )
    try:
        done = subprocess.run(command, input=asked, capture_output=True, timeout=ANSWERING, check=False)  # noqa: S603
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceUnreachable(f"{command[0]}: {reason}; is the command of --vectors installed?") from error
    if done.returncode:
        told = cut(done.stderr.decode(errors="replace").strip()[-200:])
        raise SourceUnreachable(f"{command[0]} ended with {done.returncode}: {told}")
    answers = {}
    for line in done.stdout.splitlines():
        try:
            answer = orjson.loads(line)
            answers[str(answer["id"])] = answer
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise SourceUnreachable(
                f"{command[0]}: no answer: {cut(line.decode(errors='replace'))}"
            ) from error
    return answers


def judge(vector: Vector, answer: Mapping[str, Any] | None, name: str) -> JudgedVector:
    """``name``: the implementation whose known disagreements count as such."""
    if answer is None or "skipped" in answer:
        return JudgedVector(vector, reason=cut(str((answer or {}).get("skipped", "no answer"))))
    verdict = str(answer.get("verdict", "valid" if "output" in answer else "none"))
    if verdict != vector.verdict:
        return JudgedVector(vector, False, f"{verdict}, not {vector.verdict}", vector.reasons.get(name, ""))
    if vector.output is not None and verdict == "valid" and answer.get("output") != vector.output:
        return JudgedVector(vector, False, "another output", vector.reasons.get(name, ""))
    return JudgedVector(vector, True, verdict)


def report_of(command: str, judged: Sequence[tuple[VectorSet, Sequence[JudgedVector]]]) -> FindingReport:
    every = [each for _, found in judged for each in found]
    equal = sum(each.is_equal for each in every)
    return FindingReport(
        command="specmux conformance",
        title=f"Kubernetes' answers, by {command}",
        suites=tuple(Suite(each.name, tuple(map(_case, found))) for each, found in judged),
        document={
            "command": command,
            "sets": [
                {
                    "name": each.name,
                    "judge": each.judge,
                    "cases": len(found),
                    "equal": sum(one.is_equal for one in found),
                    "different": sum(one.is_different for one in found),
                    "known": sum(bool(one.answer and one.reason) for one in found),
                    "unanswered": sum(not one.answer for one in found),
                }
                for each, found in judged
            ],
            "different": [
                {"id": each.vector.id, "answer": each.answer, "known": each.reason}
                for each in every
                if each.answer and not each.is_equal
            ],
        },
        summary=f"{equal} of {len(every)} answers are those of Kubernetes' code",
        rules=_RULES,
        is_placed=False,
        most_alike=5,
    )


def _case(judged: JudgedVector) -> Case:
    id, group = judged.vector.id, "specmux.vectors"
    if judged.is_equal:
        return Case(id, group)
    if not judged.answer:
        return Case(id, group, skipped=judged.reason)
    rule, level = ("known", Level.NOTE) if judged.reason else ("differs", Level.ERROR)
    finding = ReportFinding(
        rule, level, judged.answer, Where(id), id, judged.reason, fails=judged.is_different
    )
    return Case(id, group, (finding,))
