"""What it costs to encode and decode documents, next to Kubernetes' Go code on the same bytes, in one run.

    .venv/bin/python tests/benchmarks/bench_encoding.py [--documents DIRECTORY] [--rounds 15]

Process CPU time, medians of the rounds. The Go side (``tests/benchmarks/go``) is kube-openapi's
``handler3.ToV3ProtoBinary`` and apimachinery's deterministic CBOR, both from JSON bytes, garbage collection
included. It needs a Go toolchain with its module proxy, and is left out, with a word, where there is none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import cbor2
import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import keep

from shared_data import DATA
from specmux_converters import codecs, media_types
from specmux_converters.codecs import Fragments
from specmux_converters.document import Limits, parse
from specmux_converters.media_types import MediaType

HERE = Path(__file__).resolve()
DOCUMENTS = DATA / "k8s-pairs" / "1.35" / "v3"
LIMITS = Limits()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=Path, default=DOCUMENTS)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    texts = read(options.documents)
    largest = max(texts, key=len)
    print(f"{len(texts)} documents, {total(texts) / 1e6:.2f} MB; the largest {len(largest) / 1e6:.2f} MB\n")
    with tempfile.TemporaryDirectory() as folder:
        peer = build_peer(Path(folder))
        one = report("the largest document, nothing known before", [largest], options.rounds, peer)
        every = report(f"all {len(texts)} documents, parts shared", texts, options.rounds, peer)
    names = {f"{len(largest) / 1e6:.2f} MB": one, f"all {len(texts)} documents": every}
    rows = {
        f"{name} to {kind}": (taken[f"JSON -> {kind}"], taken.get(f"JSON -> {kind}, Go"))
        for name, taken in names.items()
        for kind in ("Protobuf", "CBOR")
    }
    keep("encoding", rows)


def read(folder: Path) -> list[bytes]:
    """The documents as compact JSON, as servers send them."""
    files = sorted(path for path in folder.rglob("*.json*") if path.name != "INDEX.json")
    raw = [
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in files
    ]
    return [orjson.dumps(orjson.loads(data)) for data in raw]


def total(texts: Sequence[bytes]) -> int:
    return sum(map(len, texts))


def report(title: str, texts: Sequence[bytes], rounds: int, peer: Path | None) -> dict[str, float]:
    """Shows the rows, and returns their milliseconds."""
    documents = [orjson.loads(text) for text in texts]
    protobuf = [codecs.encode(document, media_types.PROTOBUF) for document in documents]
    cbor = [codecs.encode(document, media_types.CBOR) for document in documents]
    kinds = (media_types.PROTOBUF, media_types.CBOR)

    def encode(*wanted: MediaType, sources: Sequence[bytes] = ()) -> None:
        fragments = Fragments()
        for document in map(orjson.loads, sources) if sources else documents:
            for media_type in wanted:
                codecs.encode(document, media_type, fragments=fragments)

    def decode(items: Sequence[bytes], media_type: MediaType) -> None:
        for item in items:
            codecs.decode(item, media_type, limits=LIMITS)

    rows: dict[str, Callable[[], object]] = {
        "document -> Protobuf": lambda: encode(media_types.PROTOBUF),
        "document -> CBOR": lambda: encode(media_types.CBOR),
        "document -> Protobuf and CBOR": lambda: encode(*kinds),
        "document -> CBOR, cbor2 canonical alone": lambda: [
            cbor2.dumps(d, canonical=True) for d in documents
        ],
        "document -> JSON": lambda: [codecs.encode(document, media_types.JSON) for document in documents],
        "JSON -> Protobuf": lambda: encode(media_types.PROTOBUF, sources=texts),
        "JSON -> CBOR": lambda: encode(media_types.CBOR, sources=texts),
        "JSON -> document": lambda: [parse(text) for text in texts],
        "Protobuf -> document": lambda: decode(protobuf, media_types.PROTOBUF),
        "CBOR -> document": lambda: decode(cbor, media_types.CBOR),
    }
    taken = {name: median_ms(run, rounds) for name, run in rows.items()}
    if peer is not None:
        for name, kind in (("protobuf", "Protobuf"), ("cbor", "CBOR")):
            taken[f"JSON -> {kind}, Go"] = go_ms(peer, name, texts, rounds)
    print(title)
    for name, spent in taken.items():
        ours = taken[name.removesuffix(", Go")]
        ratio = "" if ours == spent else f"   ours takes {ours / spent:.2f} of it"
        print(f"  {name:42}{spent:9.1f} ms{ratio}")
    print()
    return taken


def median_ms(run: Callable[[], object], rounds: int) -> float:
    run()
    spent = []
    for _ in range(rounds):
        before = time.process_time_ns()
        run()
        spent.append(time.process_time_ns() - before)
    return statistics.median(spent) / 1e6


def go_ms(peer: Path, kind: str, texts: Sequence[bytes], rounds: int) -> float:
    framed = b"".join(struct.pack(">I", len(text)) + text for text in texts)
    command = (str(peer), "time", kind, str(rounds + 1))
    answer = subprocess.run(command, input=framed, stdout=subprocess.PIPE, check=True, timeout=600)
    return statistics.median(json.loads(answer.stdout)[1:]) / 1e6


def build_peer(folder: Path) -> Path | None:
    peer = folder / "peer"
    if shutil.which("go") is None:
        print("No Go toolchain: nothing to compare with.\n")
        return None
    built = subprocess.run(("go", "build", "-o", str(peer), "."), cwd=HERE.parent / "go", timeout=600)
    if built.returncode != 0:
        print("The Go side does not build here: nothing to compare with.\n")
        return None
    return peer


if __name__ == "__main__":
    main()
