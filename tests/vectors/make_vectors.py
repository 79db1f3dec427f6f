"""Write ``vectors/`` from the recorded sets: what Kubernetes' code answered, in one form for all.

    .venv/bin/python tests/vectors/make_vectors.py

Run again it gives the same files; ``test_vectors.py`` compares them.
"""

from __future__ import annotations

import base64
import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

TESTS: Final = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS))

from vectors.known import DISAGREEMENTS  # noqa: E402

VECTORS: Final = TESTS.parent / "vectors"
RECORDED: Final = TESTS / "tools/validation/recorded"
GOLDEN: Final = TESTS / "recorded/golden"
APIEXTENSIONS: Final = "tests/benchmarks/go/apiextensions"
CEL: Final = "tests/benchmarks/go/cel"
PATCHES: Final = "tests/benchmarks/go/patches"
NOT_KEPT: Final = "not kept"
_PLAIN: Final = 64 * 1024
"""Bytes up to which a file is not gzipped."""
_ERRORS: Final = ("schema", "metadata", "embedded", "lists", "rules")


def lines(path: Path) -> list[Any]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [orjson.loads(line) for line in text.splitlines() if line.strip()]


def recorded(name: str) -> list[Any]:
    return lines(RECORDED / f"{name}.jsonl.gz")


def case(errors: Iterable[str], asked: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An invalid input where there are errors."""
    told = sorted(set(errors))
    return {"input": asked, "verdict": "invalid" if told else "valid", "errors": told, **more}


def custom(row: dict[str, Any], answer: dict[str, Any], **more: Any) -> dict[str, Any]:
    asked = {name: row[name] for name in ("schema", "object", "old") if name in row}
    fatal = [answer["fatal"]] if "fatal" in answer else []
    errors = [*fatal, *(text for part in _ERRORS for text in answer.get(part, ()))]
    return case(errors, asked, **more)


def custom_resources() -> Iterator[dict[str, Any]]:
    judge = "apiextensions-apiserver"
    for name, release, about in (
        ("custom-resources", "1.34", "Custom resources: schema, metadata, embedded objects, sets and maps."),
        ("numeric-formats", "1.37", "Custom resources with formats of numbers, enforced since 1.36."),
        ("rules", "1.37", "Custom resources with rules in CEL; updates are not ratcheted."),
        ("ratcheting", "1.37", "Updates of custom resources: what does not change is left alone."),
        ("defined-names", "1.37", "Restrictions on apiVersion, kind and metadata; updates not ratcheted."),
    ):
        version = "0.34.1" if release == "1.34" else "0.37.2"
        ratchets = name == "ratcheting"
        cases = [
            custom(row, row.get("newest", row["answer"]))
            for row in recorded(name)
            # Of updates the program judged no metadata.
            if not ratchets or row["object"]["metadata"] == {"name": "a"}
        ]
        for each in cases:
            if "old" in each["input"]:
                each["input"]["ratchets"] = ratchets
        yield of(name, "validate", about, f"{judge} {version}", APIEXTENSIONS, cases, release)
    changes = []
    for row in lines(TESTS / "tools/differences/apiserver_verdicts.jsonl"):
        for side, accepted in zip(("old", "new"), row["accepted"], strict=True):
            schema = {"type": "object", "properties": {"spec": row[side]}}
            head = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
            asked = {"schema": schema, "object": {**head, "spec": row["spec"]}}
            verdict = "valid" if accepted else "invalid"
            changes.append({"id": f"{row['case']}, {side}", "input": asked, "verdict": verdict})
    about = "One object under a schema before and after a change. Unknown fields are pruned, not refused."
    yield of("schema-changes", "validate", about, f"{judge} 0.34.1", APIEXTENSIONS, changes, "1.34")


def expressions() -> Iterator[dict[str, Any]]:
    for name, about in (
        ("cel", "Rules in CEL over one schema: every function and macro, transitions, messages."),
        ("cel_types", "Values of every type before functions of all libraries; syntax that is wrong."),
    ):
        first, *rows = recorded(name)
        cases = []
        for row in rows:
            answer = row["answer"]
            rule = {"rule": row["rule"], **row.get("extra", {})}
            asked = {"schema": "spec", "rule": rule, "value": row["value"]}
            if "old" in row:
                asked["old"] = row["old"]
            faults = [answer[key] for key in ("fault", "messageFault") if key in answer]
            each = case(faults or answer.get("rules", ()), asked)
            cases.append({**each, "verdict": "refused"} if faults else each)
        made = of(name.replace("_", "-"), "rule", about, "apiextensions-apiserver 0.37.2", CEL, cases, "1.37")
        yield {**made, "schemas": {"spec": first["schema"]}}


def built_in_kinds() -> Iterator[dict[str, Any]]:
    cases = [
        case(row["faults"], {"object": row["object"]}, release=row["release"]) for row in recorded("names")
    ]
    about = "Names by kind, labels and annotations of templates: objects of built-in kinds, sent by dry run."
    yield of(
        "names", "validate", about, "kube-apiserver of the release", "tests/cluster/record_names.py", cases
    )
    cases = []
    for row in lines(GOLDEN / "json-schema/verdicts-typed.jsonl.gz"):
        texts = [row["fatal"]] if "fatal" in row else row.get("strict", [])
        each = case(texts, {"object": row["object"], "strict": True}, id=row["id"])
        cases.append({**each, "verdict": "valid" if row["accept"] else "invalid"})
    about = "Objects of 173 built-in kinds: strict decoding alone, without what code refuses afterwards."
    judge = "strict decoding of client-go's types 0.35.0"
    yield of("typed-decoding", "decode", about, judge, NOT_KEPT, cases, "1.35")
    cases = []
    for file in ("field-validation", "field-validation-2"):
        for row in lines(GOLDEN / f"{file}.jsonl"):
            # CBOR of custom resources reports nothing upstream, and the program's patches have other inputs.
            if row["mode"] not in ("cr", "typed") or (row["mode"], row["ctype"]) == ("cr", "cbor"):
                continue
            key = "base64" if row.get("body_is_base64") else "text"
            asked = {"body": {"mediaType": f"application/{row['ctype']}", key: row["body"]}, "strict": True}
            if row["mode"] == "cr":
                asked |= {"schema": row["schema"], "preserveUnknownFields": row.get("preserve", False)}
            texts = [row["fatal"].partition(" in scheme ")[0]] if "fatal" in row else row["errors"]
            cases.append(case(texts, asked, id=row["name"]))
    about = "Bodies with unknown and double fields (KEP-2885): strict decoding alone."
    judge = "strict decoding of apimachinery and apiextensions-apiserver 0.35.0"
    yield of("field-validation", "decode", about, judge, NOT_KEPT, cases, "1.35")


def definitions() -> Iterator[dict[str, Any]]:
    cases = [
        case(row["faults"], {name: row[name] for name in ("definition", "old") if name in row})
        for row in recorded("definitions")
    ]
    about = "CustomResourceDefinitions, created and updated."
    recorder = "tests/benchmarks/go/definitions"
    yield of("definitions", "define", about, "apiextensions-apiserver 0.37.2", recorder, cases, "1.37")


def patches() -> Iterator[dict[str, Any]]:
    for name, judge, about in (
        ("json-patch", "evanphx/json-patch as apiservers use it", "JSON patches (RFC 6902)."),
        ("strategic-merge", "apimachinery 0.37.2", "Strategic merge patches of built-in kinds of 1.35."),
        ("apply", "structured-merge-diff 6.4.2", "Server-side apply by one manager, kinds of 1.35."),
    ):
        cases = []
        for row in recorded(name):
            patch = orjson.loads(row["json"]) if name == "json-patch" else row.get("patch", row.get("apply"))
            asked = {key: row[key] for key in ("apiVersion", "kind", "old") if key in row} | {"patch": patch}
            answer = row["answer"] or {"result": {}}
            each = case([answer["error"]] if "error" in answer else [], asked)
            cases.append({**each, "output": answer["result"]} if "result" in answer else each)
        yield of(name, name, about, judge, PATCHES, cases, "1.35")


def texts() -> Iterator[dict[str, Any]]:
    cases = []
    for row in recorded("streams"):
        each = case([row["error"]] if "error" in row else [], {"text": row["stream"]})
        cases.append(each if "error" in row else {**each, "output": row["objects"]})
    about = "Streams of YAML and JSON as kubectl reads them; the output is the list of documents."
    recorder = "tests/benchmarks/go/streams"
    yield of("streams", "parse", about, "apimachinery 0.37.2", recorder, cases, "1.37")
    cases = [
        {
            "input": {"type": row["type"], "text": row["text"]},
            "verdict": "valid" if row["accept"] else "invalid",
        }
        for row in lines(GOLDEN / "json-schema/scalars.jsonl.gz")
    ]
    about = "Texts of the types Quantity (quantity), Time, MicroTime, and of []byte (bytes)."
    yield of("scalars", "scalar", about, "client-go's types 0.35.0", NOT_KEPT, cases, "1.35")
    cases = []
    for row in recorded("metadata"):
        for release in ("1.34", "1.35", "1.37"):
            if release in row:
                cases.append(case(row[release], {"metadata": row["metadata"]}, release=release))
    about = "metadata of a namespaced object, alone; a release without a case answers as the one before."
    recorder = "tests/benchmarks/go/object_metadata"
    yield of("metadata", "metadata", about, "apimachinery of the release", recorder, cases)


def unions() -> Iterator[dict[str, Any]]:
    schema = yaml.safe_load((GOLDEN / "unions/schema.yaml").read_text())
    cases = []
    for row in lines(GOLDEN / "unions/algorithm-b.jsonl"):
        asked = {"schema": "union", **{name: row[name] for name in ("mode", "old", "new")}}
        each = case([row["error"]] if "error" in row else [], asked, id=row["name"])
        cases.append({**each, "output": row["out"]} if "out" in row else each)
    about = "Unions normalised on update and apply (KEP-1027). The schema is structured-merge-diff's."
    judge = "structured-merge-diff before commit 35d4e8c"
    yield {**of("unions", "union", about, judge, NOT_KEPT, cases), "schemas": {"union": schema}}


def protobuf() -> Iterator[dict[str, Any]]:
    cases = []
    for path in sorted((GOLDEN / "protobuf/edge").glob("*.json")):
        output = base64.b64encode(path.with_suffix(".pb").read_bytes()).decode()
        asked = {"document": orjson.loads(path.read_bytes())}
        cases.append({"id": path.stem, "input": asked, "verdict": "valid", "output": output})
    about = "OpenAPI 3 documents written as Protobuf (openapi.v3.Document), deterministically: base64."
    yield of("protobuf", "encode", about, "gnostic and kube-openapi", NOT_KEPT, cases)


def conversions() -> Iterator[dict[str, Any]]:
    cases = []
    for row in lines(Path(__file__).with_name("conversions.jsonl")):
        each = case(row.get("errors", ()), {"document": row["document"]}, id=row["name"])
        cases.append({**each, "output": row["output"]} if "output" in row else each)
    about = (
        "Swagger 2.0 documents as OpenAPI 3.0. Many were written for what openapiconv loses: its answers are "
        "no standard, and the disagreements say why. Empty components are left out."
    )
    judge = "kube-openapi's openapiconv of 2026-08-21"
    yield of("conversions", "convert", about, judge, "tests/benchmarks/go/convert", cases)


def of(
    name: str,
    task: str,
    about: str,
    judge: str,
    recorder: str,
    cases: list[dict[str, Any]],
    release: str | None = None,
) -> dict[str, Any]:
    """A file; cases get their ids, and what disagrees with them its reason."""
    seen: Counter[str] = Counter()
    done = []
    for number, each in enumerate(cases, 1):
        id = f"{name}/{each.pop('id', f'{number:04}')}"
        seen[id] += 1
        id += f" ({seen[id]})" if seen[id] > 1 else ""
        known = [
            {"implementation": who, "reason": reason}
            for who, by_id in DISAGREEMENTS.items()
            if (reason := by_id.get(id)) is not None
        ]
        done.append({"id": id, **each, **({"disagreements": known} if known else {})})
    head = {"$schema": "vectors.schema.json", "name": name, "task": task, "about": about}
    told = {"judge": judge, "recorder": recorder, **({"release": release} if release else {})}
    return {**head, **told, "cases": done}


def with_named_schemas(file: dict[str, Any]) -> dict[str, Any]:
    """A schema of more than one case is written once."""
    texts = [orjson.dumps(each["input"].get("schema"), option=orjson.OPT_SORT_KEYS) for each in file["cases"]]
    often = [text for text, count in Counter(texts).items() if count > 1 and text.startswith(b"{")]
    names = {text: f"{number:03}" for number, text in enumerate(often, 1)}
    if not names:
        return file
    for each, text in zip(file["cases"], texts, strict=True):
        if text in names:
            each["input"]["schema"] = names[text]
    schemas = {**file.get("schemas", {}), **{name: orjson.loads(text) for text, name in names.items()}}
    return {
        **{name: file[name] for name in file if name != "cases"},
        "schemas": schemas,
        "cases": file["cases"],
    }


def files() -> Iterator[tuple[Path, bytes]]:
    """Each with its text, unpacked."""
    for made in (
        *custom_resources(),
        *expressions(),
        *built_in_kinds(),
        *definitions(),
        *patches(),
        *texts(),
        *unions(),
        *protobuf(),
        *conversions(),
    ):
        file = with_named_schemas(made)
        head = orjson.dumps(
            {name: file[name] for name in file if name != "cases"}, option=orjson.OPT_INDENT_2
        )
        rows = b",\n".join(orjson.dumps(each) for each in file["cases"])
        text = head.removesuffix(b"\n}") + b',\n  "cases": [\n' + rows + b"\n]}\n"
        yield VECTORS / f"{file['name']}.json{'.gz' if len(text) > _PLAIN else ''}", text


def main() -> None:
    for path, text in files():
        packed = gzip.compress(text, 9, mtime=0) if path.suffix == ".gz" else text
        path.write_bytes(packed)
        print(f"{path.name}: {len(orjson.loads(text)['cases'])} cases, {len(packed)} bytes")


if __name__ == "__main__":
    main()
