"""Random Swagger 2.0 documents, converted here, by swagger2openapi and by kube-openapi, and compared:
``python tests/stress/fuzz_conversion.py --documents 20000``.

What the peers do otherwise, and ``docs/conversion.md`` says why, is undone by a rule with a name below; how
often each was needed is printed. What is left is a difference. Our own result as Protobuf is compared with
the bytes of gnostic, as CBOR with what apimachinery reads. Needs npm and Go; what they build is kept in
``--peers``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import orjson

from data.random_swagger import random_swagger, with_faults
from specmux_converters import codecs, media_types
from specmux_converters.document import canonical
from specmux_converters.errors import ConverterError
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.from_swagger2.reading.component_names import allowed_names
from specmux_converters.losses import unescape
from specmux_converters.references import references

BATCH: Final = 500
SHOWN: Final = 20
HERE: Final = Path(__file__).resolve().parent
PEERS: Final = Path.home() / ".cache/specmux-peers"

SWAGGER2OPENAPI: Final = """
const converter = require('swagger2openapi');
const lines = require('readline').createInterface({input: process.stdin});
(async () => {
  for await (const line of lines) {
    let answer;
    try {
      const options = {patch: true, warnOnly: true, resolve: false, refSiblings: 'preserve'};
      answer = {document: (await converter.convertObj(JSON.parse(line), options)).openapi};
    } catch (error) { answer = {error: String(error.message || error)}; }
    console.log(JSON.stringify(answer));
  }
})();
"""

Rules = Counter[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peers", type=Path, default=PEERS)
    asked = parser.parse_args()
    peers = Peers(asked.peers)
    counts: Counter[str] = Counter()
    rules: Rules = Counter()
    for start in range(0, asked.documents, BATCH):
        seeds = range(asked.seed + start, asked.seed + min(start + BATCH, asked.documents))
        swaggers = [random_swagger(Random(seed)) for seed in seeds]
        compare(list(seeds), swaggers, peers, counts, rules)
        for seed, swagger in zip(seeds, swaggers, strict=True):
            break_and_convert(Random(seed), swagger, counts)
    for title, found in (("counts", counts), ("undone by rule", rules)):
        print(title)
        for name, count in sorted(found.items()):
            print(f"  {name}: {count}")
    sys.exit(any("DIFFERENT" in name or "FAULT" in name for name in counts))


class Peers:
    """Programs in other languages, built once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._npm = folder / "npm"
        self._go = folder / "peer"
        if not (self._npm / "node_modules/swagger2openapi").is_dir():
            install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(self._npm)]
            subprocess.run([*install, "swagger2openapi@7.0.8"], check=True, timeout=600)
        (self._npm / "convert.js").write_text(SWAGGER2OPENAPI)
        go = shutil.which("go") or "/usr/local/go/bin/go"
        build = [go, "build", "-o", str(self._go), "."]
        subprocess.run(build, cwd=HERE.parent / "benchmarks/go", check=True, timeout=600)

    def swagger2openapi(self, documents: list[Any]) -> list[Any]:
        given = b"\n".join(map(orjson.dumps, documents)) + b"\n"
        command = ["node", str(self._npm / "convert.js")]
        answer = subprocess.run(command, input=given, capture_output=True, check=True, timeout=600)
        return [orjson.loads(line).get("document") for line in answer.stdout.splitlines()]

    def go(self, what: str, documents: list[bytes]) -> Iterator[bytes | None]:
        given = b"".join(struct.pack(">I", len(each)) + each for each in documents)
        command = [str(self._go), "answer", what]
        answer = subprocess.run(command, input=given, capture_output=True, check=True, timeout=600).stdout
        while answer:
            refused, length = struct.unpack_from(">BI", answer)
            yield None if refused else answer[5 : 5 + length]
            answer = answer[5 + length :]


def compare(seeds: list[int], swaggers: list[Any], peers: Peers, counts: Counter[str], rules: Rules) -> None:
    ours = [convert_whole(swagger).document for swagger in swaggers]
    for_kubernetes = [convert_whole(swagger, profile="kubernetes").document for swagger in swaggers]
    theirs = peers.swagger2openapi([with_default_format(swagger) for swagger in swaggers])
    for seed, swagger, our, their in zip(seeds, swaggers, ours, theirs, strict=True):
        if their is None:
            tell("swagger2openapi refuses", seed, counts, "")
            continue
        normal = Normal(swagger, rules)
        told = differences(normal.ours(our), normal.theirs(their))
        tell("swagger2openapi", seed, counts, next(told, ""))
    texts = [orjson.dumps(swagger) for swagger in swaggers]
    for seed, our, upgraded in zip(seeds, for_kubernetes, peers.go("upgrade", texts), strict=True):
        if upgraded is None:
            tell("kube-openapi refuses", seed, counts, "")
            continue
        told = differences(schemas_of(our, rules), schemas_of_go(orjson.loads(upgraded), rules))
        tell("kube-openapi, schemas", seed, counts, next(told, ""))
    parsed = [orjson.loads(canonical(our)) for our in ours]
    protobuf = peers.go("protobuf", [canonical(each) for each in ours])
    for seed, our, expected in zip(seeds, parsed, protobuf, strict=True):
        is_same = codecs.encode(our, media_types.PROTOBUF) == expected
        tell("gnostic, Protobuf", seed, counts, "" if is_same else "other bytes")
    cbor = [codecs.encode(our, media_types.CBOR) for our in parsed]
    for seed, our, read in zip(seeds, parsed, peers.go("uncbor", cbor), strict=True):
        told = differences(our, None if read is None else orjson.loads(read))
        tell("apimachinery, CBOR", seed, counts, next(told, ""))


def tell(name: str, seed: int, counts: Counter[str], difference: str) -> None:
    counts[f"{name}: {'DIFFERENT' if difference else 'equal'}"] += 1
    if difference and counts[f"{name}: DIFFERENT"] <= SHOWN:
        print(f"{name}, seed {seed}: {difference}")


def break_and_convert(random: Random, swagger: Any, counts: Counter[str]) -> None:
    broken = with_faults(random, swagger)
    for profile in ("oas", "kubernetes"):
        try:
            made = convert_whole(broken, profile=profile).document
        except ConverterError:
            counts["with faults: refused"] += 1
            continue
        refs = [
            ref
            for ref in references(made, "document")
            # Ids and requirements are names, and a requirement may have named nothing before.
            if ref.startswith("#/") and "/operationIds/" not in ref and "/securitySchemes/" not in ref
        ]
        dangling = [ref for ref in refs if not leads(made, ref)]
        counts["with faults: converted" if not dangling else f"FAULT: {dangling[0]} dangles"] += 1


def leads(document: Any, ref: str) -> bool:
    node = document
    for token in ref.split("/")[1:]:
        node = node.get(token.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node is not None


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            if key not in ours or key not in theirs:
                who = "theirs" if key in theirs else "ours"
                yield f"{path}/{key}: only {who}: {str((theirs | ours)[key])[:80]}"
            else:
                yield from differences(ours[key], theirs[key], f"{path}/{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(a, b, f"{path}/{index}")
    elif ours != theirs:
        yield f"{path}: {str(ours)[:80]} is not {str(theirs)[:80]}"


def with_default_format(node: Any) -> Any:
    """swagger2openapi does not know that csv is the default: it is told so."""
    if isinstance(node, list):
        return [with_default_format(item) for item in node]
    if not isinstance(node, dict):
        return node
    told = {key: with_default_format(value) for key, value in node.items()}
    if node.get("type") == "array" and "in" in node:
        told.setdefault("collectionFormat", "csv")
    return told


class Normal:
    """Both results, without what is meant to differ."""

    def __init__(self, swagger: Any, rules: Rules) -> None:
        self._swagger = swagger
        self._rules = rules
        self._names = {}
        for section in ("definitions", "parameters", "responses", "securityDefinitions"):
            self._names |= allowed_names(swagger.get(section, {}))

    def ours(self, document: Any) -> Any:
        return self._shared(self._walk(document, self._our_object))

    def theirs(self, document: Any) -> Any:
        new = {theirs: ours for name, ours in self._names.items() if (theirs := their_name(name)) != ours}
        text = orjson.dumps(document).decode()
        for theirs, ours in new.items():
            if theirs in text:
                self._rules["names: the characters at the end"] += 1
                text = re.sub(f'(?<=["/]){re.escape(theirs)}(?=")', ours, text)
        return self._shared(self._walk(orjson.loads(text), self._their_object))

    def _walk(self, node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
        if isinstance(node, list):
            return [self._walk(item, change) for item in node]
        if not isinstance(node, dict):
            return node
        kept = {key: self._walk(value, change) for key, value in node.items() if key[:2] != "x-"}
        if len(kept) < len(node):
            self._rules["extensions: swagger2openapi walks into them"] += 1
        return change(kept)

    def _our_object(self, node: dict[str, Any]) -> dict[str, Any]:
        wrapped = node.get("allOf")
        if isinstance(wrapped, list) and len(wrapped) == 1 and wrapped[0].keys() == {"$ref"}:
            self._rules["$ref with siblings, in allOf"] += 1
            node = {key: value for key, value in node.items() if key != "allOf"} | wrapped[0]
        if isinstance(node.get("discriminator"), dict) and "mapping" in node["discriminator"]:
            self._rules["discriminator: the names that were changed"] += 1
            node = node | {"discriminator": {"propertyName": node["discriminator"]["propertyName"]}}
        return self._both(node)

    def _their_object(self, node: dict[str, Any]) -> dict[str, Any]:
        wrapped = node.get("allOf")
        if isinstance(wrapped, list) and len(wrapped) == 1 and wrapped[0].keys() == {"$ref"}:
            node = {key: value for key, value in node.items() if key != "allOf"} | wrapped[0]
        return self._both(node)

    def _both(self, node: dict[str, Any]) -> dict[str, Any]:
        if "in" in node:
            node = self._without_default_style(node)
        content = node.get("content")
        if not isinstance(content, dict):
            return node
        content = {
            media_type: {key: value for key, value in media.items() if key != "encoding"}
            for media_type, media in content.items()
        }
        if any("encoding" in media for media in node["content"].values()):
            self._rules["forms: style of lists (oas-kit #198)"] += 1
        if [*content] in (["*/*"], ["application/json"]):
            content = {"any": next(iter(content.values()))}
        result = node | {"content": content}
        if any(media_type in content for media_type in FORMS) and result.pop("required", None):
            self._rules["forms: required where a field is"] += 1
        return result

    def _without_default_style(self, node: dict[str, Any]) -> dict[str, Any]:
        style = node.get("style", "form" if node["in"] == "query" else "simple")
        said = {"style": "form" if node["in"] == "query" else "simple", "explode": style == "form"}
        kept = {key: value for key, value in node.items() if key not in said or value != said[key]}
        self._rules["style and explode: said where they are the default"] += len(node) - len(kept)
        return kept

    def _shared(self, document: Any) -> Any:
        """Without the edition, with shared responses written out, and without definitions that never end."""
        document.pop("openapi", None)
        shared = document.get("components", {}).get("responses", {})
        bodies = document.get("components", {}).pop("requestBodies", {})
        for item in document.get("paths", {}).values():
            for operation in item.values():
                if "$ref" in operation.get("requestBody", {}):
                    operation["requestBody"] = bodies[operation["requestBody"]["$ref"].rpartition("/")[2]]
                    self._rules["bodies: swagger2openapi shares equal ones"] += 1
                for status, response in operation["responses"].items():
                    if "$ref" in response:
                        operation["responses"][status] = {**shared[response["$ref"].rpartition("/")[2]]}
                        self._rules["shared responses: written out for other media types"] += 1
        # What is written out has its operation's media types, where swagger2openapi has the document's.
        self._shared_content(document)
        if "schemas" in document.get("components", {}):
            document["components"]["schemas"] = without_endless(
                document["components"]["schemas"], self._rules
            )
        return document

    def _shared_content(self, document: Any) -> None:
        named = {
            (path, method, status)
            for path, item in self._swagger["paths"].items()
            for method, operation in item.items()
            for status, response in operation["responses"].items()
            if "$ref" in response
        }
        for path, method, status in named:
            response = document["paths"][path][method]["responses"][status]
            if "content" in response:
                response["content"] = next(iter(response["content"].values()))


FORMS: Final = ("multipart/form-data", "application/x-www-form-urlencoded")


def is_endless(name: str, schemas: Any) -> bool:
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        schema = schemas.get(name, {})
        ref = schema.get("$ref")
        if ref is None:
            return bool(schema == {})
        name = unescape(ref.removeprefix("#/components/schemas/"))
    return True


def their_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name)


def schemas_of_go(document: Any, rules: Rules) -> Any:
    """kube-openapi leaves references inside ``allOf`` and the discriminator as they were in Swagger 2.0."""
    text = orjson.dumps(document).decode()
    if "#/definitions/" in text:
        rules["kube-openapi: references that it leaves dangling"] += 1
        text = text.replace('"#/definitions/', '"#/components/schemas/')
    refs = re.compile(r'(?<="#/components/schemas/)[^"]*')
    return schemas_of(orjson.loads(refs.sub(lambda match: unquote(match[0]), text)), rules)


def schemas_of(document: Any, rules: Rules) -> Any:
    return without_endless(_without_extensions(document.get("components", {}).get("schemas", {})), rules)


def without_endless(schemas: Any, rules: Rules) -> Any:
    endless = [name for name in schemas if is_endless(name, schemas)]
    rules["definitions that lead to themselves"] += len(endless)
    return schemas | dict.fromkeys(endless)


def _without_extensions(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_extensions(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _without_extensions(value) for key, value in node.items() if key[:2] != "x-"}
    if isinstance(kept.get("discriminator"), dict):
        kept["discriminator"] = kept["discriminator"]["propertyName"]
    return kept


if __name__ == "__main__":
    main()
