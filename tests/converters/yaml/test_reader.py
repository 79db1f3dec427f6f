from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shared_data import DATA, documents, files, load, read
from specmux_converters import ConverterError, Limits
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.yaml import parse_yaml_stream

ROOT = Path(__file__).resolve().parents[3]
OWN_YAML = ("docs", "examples", "helm", "tests/cluster/chart", "tests/helm")
OTHERWISE = {"github-workflow.yaml", "default-values.yaml"}
"""One whose key is ``on``, which is true to PyYAML, and one that is empty."""


def parse_yaml(data: bytes, **limits: Limits) -> dict[str, Any]:
    (document,) = parse_yaml_stream(data, **limits)
    return document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("=", "="),
        ("<", "<"),
        ("on", "on"),
        ("no", "no"),
        ("y", "y"),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("1_000", "1_000"),
        ("true", True),
        ("False", False),
        ("tRue", "tRue"),
        ("~", None),
        ("null", None),
        ("", None),
        ("0o17", 15),
        ("0x1F", 31),
        ("010", 10),
        ("+12", 12),
        ("-0", 0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.5e-3", 0.0015),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("!!int '1'", 1),
        ("!!binary aGk=", "aGk="),
        ("|\n  x\n  y", "x\ny\n"),
    ],
)
def test_scalar(text: str, value: Any) -> None:
    found = parse_yaml(f"a: {text}\n".encode())["a"]
    assert found == value
    assert type(found) is type(value)


def test_keys_are_their_own_text() -> None:
    text = "on: 1\n200: 2\n1.0: 3\nnull: 4\n~: 5\ntrue: 6\n'=': 7\n2020-01-01: 8\n"
    assert parse_yaml(text.encode()) == {
        "on": 1, "200": 2, "1.0": 3, "null": 4, "~": 5, "true": 6, "=": 7, "2020-01-01": 8,
    }  # fmt: skip


def test_merge_keys_and_aliases() -> None:
    text = (
        "a: &a {x: 1, y: 2}\nb: &b {y: 3}\nc: {<<: *a, x: 0}\nd: {<<: [*b, *a], z: 4}\ne: {'<<': 1}\nf: *a\n"
    )
    found = parse_yaml(text.encode())
    assert found["c"] == {"x": 0, "y": 2}
    assert found["d"] == {"x": 1, "y": 3, "z": 4}
    assert found["e"] == {"<<": 1}
    assert found["f"] is found["a"]


def test_stream_leaves_out_empty_documents() -> None:
    assert parse_yaml_stream(b"---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n") == ({"a": 1}, {"b": 2})
    assert parse_yaml_stream(b"") == ()


@pytest.mark.parametrize(
    ("text", "pointer", "words"),
    [
        ("a: {b: 1, b: 2}", "/a/b", "twice"),
        ("a: {b: 1, 'b': 2}", "/a/b", "twice"),
        ("a: [0, .inf]", "/a/1", "no such number"),
        ("a: .nan", "/a", "no such number"),
        ("a: 1e400", "/a", "infinite"),
        ("a: " + "9" * 400, "/a", "infinite"),
        ("a: " + "9" * 5000, "/a", "infinite"),
        ("a: &x [*x]", "/a/0", "contains itself"),
        ("a: *x", "/a", "unknown anchor"),
        ("a: !foo bar", "/a", "tag"),
        ("a: !!python/object:os.system {}", "/a", "tag"),
        ("{[a]: 1}", "", "key"),
        ("a: &x b\n*x : 1", "", "alias"),
        ("{<<: 1}", "", "merge"),
        ("[1]", "", "mapping"),
        ("a: b: c", "", "line 1"),
        ('"\\ud800"', "", "not YAML"),
        ("a: \x00", "", "not YAML"),
    ],
)
def test_refused(text: str, pointer: str, words: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        parse_yaml(text.encode())
    assert (refused.value.pointer, words in refused.value.reason) == (pointer, True), refused.value


def laughs(levels: int) -> bytes:
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    "data",
    [
        laughs(12),
        b"a: &a '" + b"x" * 1_000_000 + b"'\nb: [" + b"*a," * 1000 + b"]",
        b"[" * 100_000,
        b"a: " + b"[" * 300,
        b"a: " + b"{b: " * 300,
        b"\n".join([b"a0: &a0 [1]"] + [b"a%d: &a%d [*a%d]" % (i, i, i - 1) for i in range(1, 400)]),
        b"- " * 100_000,
    ],
)
def test_bombs(data: bytes) -> None:
    with pytest.raises(LimitExceeded):
        parse_yaml(data)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_directives(encoding: str) -> None:
    few = "".join(f"%TAG !{number}! tag:yaml.org,2002:\n" for number in range(1000)) + "---\na: !7!str 1\n"
    assert parse_yaml_stream(few.encode(encoding)) == ({"a": "1"},)
    with pytest.raises(LimitExceeded, match="%TAG"):
        parse_yaml_stream(f"%TAG !x! tag:yaml.org,2002:\n{few}".encode(encoding))


def test_limits_of_the_caller() -> None:
    parse_yaml(b"a: [[1]]", limits=Limits(max_depth=3))
    for limits in (Limits(max_depth=2), Limits(max_bytes=7), Limits(max_expanded_bytes=50)):
        with pytest.raises(LimitExceeded):
            parse_yaml(b"a: [[1]]", limits=limits)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=10)
    | st.sampled_from(["=", "on", "1:30", "~", "", "<<", "2020-01-01", "0x1", "1e3", ".5", "null"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab1:=~", max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abc", min_size=1), VALUES))
def test_json_is_yaml(document: Any) -> None:
    assert parse_yaml(json.dumps(document, ensure_ascii=False).encode()) == document


@given(st.binary(max_size=60) | st.text("&*a:[]{}<!|>'\"- \n#%,?\t", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ConverterError):
        parse_yaml_stream(data)


def manifests() -> list[Any]:
    """Definitions of others; in a clone YAML of the repository itself, but no templates."""
    if (DATA / "crds").is_dir():
        return files(DATA / "crds", "**/*.yaml*")
    found = [path for folder in OWN_YAML for path in sorted((ROOT / folder).rglob("*.y*ml"))]
    kept = (path for path in found if "templates" not in path.parts and path.name not in OTHERWISE)
    return [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in kept]


@pytest.mark.parametrize("path", manifests())
def test_real_manifests_say_what_pyyaml_reads(path: Any) -> None:
    data = read(path)
    try:
        theirs = [each for each in yaml.load_all(data, Loader=yaml.CSafeLoader) if each]
    except yaml.YAMLError:
        assert b": =" in data or b"- =" in data  # what PyYAML has no constructor for
        return
    assert list(parse_yaml_stream(data)) == theirs


def test_real_json_is_yaml() -> None:
    path = documents("1.35")["apis/policy/v1"]
    assert parse_yaml(read(path)) == load(path)


@pytest.mark.parametrize("is_manifest", [True, False])
def test_scalars_are_what_they_are_alone_when_there_are_more_than_are_remembered(is_manifest: bool) -> None:
    texts = [f"{number}{suffix}" for number in range(4000) for suffix in ("", ".5", "a")] + ["yes", "~"] * 2
    data = "".join(f"- {text}\n" for text in texts).encode()
    (document,) = parse_yaml_stream(b"all:\n" + data, is_manifest=is_manifest)
    alone = [
        parse_yaml_stream(f"a: {text}".encode(), is_manifest=is_manifest)[0]["a"] for text in texts[::97]
    ]
    assert repr(document["all"][::97]) == repr(alone)


@pytest.mark.timeout(20)
def test_keys_with_names_of_their_own_and_merges_take_linear_time() -> None:
    numbers = "".join(f"0x{number:x}: a\n" for number in range(60_000))
    (document,) = parse_yaml_stream(numbers.encode(), is_manifest=True)
    assert list(document)[:3] == ["0", "1", "2"]
    assert len(document) == 60_000
    merges = "a: &a {b: 1}\nc:\n" + "  <<: *a\n" * 60_000
    (document,) = parse_yaml_stream(merges.encode())
    assert document == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    "data", [b"a: [1, {b: ~}]\n---\n- x", b"a: &x [yes]\nb: *x\n", b"a: 'x", b"\xff\xfe"]
)
def test_without_libyaml_the_same_is_read(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome() -> Any:
        try:
            return parse_yaml_stream(data, is_manifest=True)
        except InvalidDocument as error:
            return str(error).partition(":")[0]

    found = outcome()
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert outcome() == found
