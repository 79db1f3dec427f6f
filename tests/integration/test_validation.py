"""``POST /openapi/validate`` over real sockets: an apiserver's answers, in every form, and who may ask."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import cbor2
import orjson
import yaml

from fakes.cluster import FakeCluster
from running.service import backend, directory, service
from running.validating import PATH, Shop, order, run, shop, write_documents
from specmux_aggregator.config.settings import AuthSettings, KubernetesSettings

UNKNOWN = 'unknown field "spec.extra"'


def test_directives_are_an_apiservers(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        wrong = order(count=1, extra=True)
        status, headers, told = await shop.post(wrong, "?fieldValidation=Strict")
        assert (status, told["reason"], told["code"]) == (400, "BadRequest", 400)
        assert told["message"] == (
            f'Order in version "v1" cannot be handled as a Order: strict decoding error: {UNKNOWN}'
        )
        assert "Warning" not in headers
        for query in ("", "?fieldValidation=Warn", "?fieldValidation="):
            status, headers, told = await shop.post(wrong, query)
            assert (status, told["status"]) == (200, "Success")
            assert headers.getall("Warning") == ['299 - "unknown field \\"spec.extra\\""']
        status, headers, _ = await shop.post(wrong, "?fieldValidation=Ignore")
        assert (status, "Warning" in headers) == (200, False)
        status, _, told = await shop.post(wrong, "?fieldValidation=strict")
        assert (status, told["reason"], told["details"]["kind"]) == (422, "Invalid", "CreateOptions")
        assert told["message"].endswith(
            'Unsupported value: "strict": supported values: "", "Ignore", "Strict", "Warn"'
        )

    run(tmp_path, scenario)


def test_rules_that_wait_for_the_schema_are_a_cause_and_no_warning(tmp_path: Path) -> None:
    """As an apiserver: a text may be in the Status, and nothing is in Warning."""

    async def scenario(shop: Shop) -> None:
        for more, status in (({}, 422), ({"extra": True}, 400)):
            answer = await shop.post(order(count="one", **more), "?fieldValidation=Strict")
            assert (answer[0], "Warning" in answer[1]) == (status, False)
            waits = "some validation rules were not checked" in answer[2]["message"]
            assert waits is (status == 422)

    run(tmp_path, scenario)


def test_invalid_object_is_told_with_its_causes_and_in_the_report(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        wrong = order(count=0, extra=True)
        status, headers, told = await shop.post(wrong)
        assert (status, headers["Cache-Control"]) == (422, "no-store")
        field = "spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1"
        assert told["message"] == f'Order.shop.example.org "one" is invalid: {field}'
        (cause,) = told["details"]["causes"]
        assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", "spec.count")
        status, _, report = await shop.post(wrong, "?report=1")
        assert (status, report["valid"], report["status"]) == (200, False, told)
        assert [each["check"] for each in report["violations"]] == ["unknown-field", "schema"]
        assert report["violations"][1]["line"] == 1
        assert report["warnings"] == ['299 - "unknown field \\"spec.extra\\""']
        status, _, report = await shop.post(order(count=1), "?report")
        assert (report["valid"], report["violations"]) == (True, [])

    run(tmp_path, scenario)


def test_forms_of_one_object_have_one_verdict(tmp_path: Path) -> None:
    async def answers(shop: Shop, value: dict[str, Any]) -> AsyncIterator[tuple[Any, ...]]:
        bodies = {
            "application/json": orjson.dumps(value),
            "application/json; charset=utf-8": orjson.dumps(value),
            "application/yaml": yaml.safe_dump(value).encode(),
            "application/cbor": cbor2.dumps(value),
            None: orjson.dumps(value),
        }
        for content_type, body in bodies.items():
            status, headers, told = await shop.post(body, "?report=1", content_type=content_type)
            messages = [each["message"] for each in told["violations"]]
            yield status, headers.getall("Warning", []), messages, told["status"]["code"]

    async def scenario(shop: Shop) -> None:
        for fields in ({"count": 1}, {"count": 0}, {"count": "1"}, {"count": 1, "extra": None}):
            found = [each async for each in answers(shop, order(**fields))]
            assert found == [found[0]] * len(found)

    run(tmp_path, scenario)


CBOR = "application/cbor"
YAML = "application/yaml"
OTHER_VERSION = {"apiVersion": "shop.example.org/v2", "kind": "Order"}
NO_OBJECTS: list[tuple[Any, str, dict[str, str], int, str]] = [
    ({"apiVersion": "shop.example.org/v1", "kind": "Ordr"}, "", {}, 404, "did you mean Order"),
    (OTHER_VERSION, "", {}, 404, 'no matches for kind "Order" in version "shop.example.org/v2"; no document'),
    ({"kind": "Order"}, "", {}, 400, "Object 'apiVersion' is missing in"),
    (b"{", "", {}, 400, "unexpected end of JSON input"),
    (b"", "", {}, 400, "unexpected end of JSON input"),
    (b'{"apiVersion": NaN}', "", {}, 400, "invalid character 'N'"),
    (b"{}", "?report=perhaps", {}, 400, "report is true or false"),
    (b"{}", "", {"Content_Encoding": "br"}, 415, "only gzip is read"),
    (b"{}", "", {"Content_Encoding": "gzip"}, 400, "malformed"),
    (gzip.compress(b" " * (3 * 1024 * 1024 + 1)), "", {"Content_Encoding": "gzip"}, 413, "too large"),
    (b"", "", {"content_type": "application/vnd.kubernetes.protobuf"}, 415, "accepted media types"),
    (b"a=b", "", {"content_type": "application/x-www-form-urlencoded"}, 415, CBOR),
]


def test_what_is_no_object_is_said(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        for body, query, headers, code, message in NO_OBJECTS:
            status, fields, told = await shop.post(body, query, **headers)
            assert (status, told["kind"], told["status"], told["code"]) == (code, "Status", "Failure", code)
            if code == 415 and "Content_Encoding" not in headers:
                taken = "application/json, application/yaml, application/cbor"
                assert (fields["Accept"], fields["Accept-Post"]) == (taken, taken)
            assert message in told["message"], told

    run(tmp_path, scenario)


def test_several_objects_are_answered_each(tmp_path: Path) -> None:
    stream = "---\n".join(yaml.safe_dump(each) for each in (order(count=1), order("two", count=0)))
    stream += "---\n" + yaml.safe_dump({"apiVersion": "v9", "kind": "Order"})
    listed = {"apiVersion": "v1", "kind": "List", "items": list(yaml.safe_load_all(stream))}

    async def scenario(shop: Shop) -> None:
        for body, content_type in ((stream.encode(), YAML), (orjson.dumps(listed), "application/json")):
            status, _, told = await shop.post(body, content_type=content_type)
            assert (status, told["kind"], len(told["items"])) == (422, "List", 3)
            assert [each["code"] for each in told["items"]] == [200, 422, 404]
            assert told["items"][0]["details"] == {
                "name": "one",
                "group": "shop.example.org",
                "kind": "Order",
            }
            assert "greater than or equal to 1" in told["items"][1]["message"]
        status, _, told = await shop.post(stream.encode(), "?report=1", content_type=YAML)
        assert (status, [each["valid"] for each in told["items"]]) == (200, [True, False, False])
        assert told["items"][1]["violations"][0]["line"] == 13
        status, headers, told = await shop.post(
            {**listed, "items": [order(count=1, extra=1), order("b", count=2)]}
        )
        assert (status, [each["status"] for each in told["items"]]) == (200, ["Success", "Success"])
        assert headers.getall("Warning") == ['299 - "unknown field \\"spec.extra\\""']
        assert (await shop.post({**listed, "items": []}))[0] == 200

    run(tmp_path, scenario)


def test_gzip_bodies_are_read(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        for value, expected in ((order(count=1), 200), (order(count=0), 422)):
            body = gzip.compress(orjson.dumps(value))
            assert (await shop.post(body, Content_Encoding="gzip"))[0] == expected

    run(tmp_path, scenario)


def review(operation: Any, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "specmux/v1", "kind": "ValidationReview", "operation": operation, **fields}


MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
REVIEWS: list[tuple[dict[str, Any], int, str]] = [
    (review("CREATE", object=order(count=1)), 200, ""),
    (review("CREATE", object=order(count=0)), 422, "greater than or equal to 1"),
    (review("UPDATE", object=order(count=0), oldObject=order(count=0)), 200, ""),
    (review("UPDATE", object=order("b"), oldObject=order("a")), 400, "match the name on the URL (a)"),
    (review("PATCH", patch={"spec": {"count": 0}}, patchType=MERGE, oldObject=order()), 422, "or equal to 1"),
    (review("PATCH", patch='{"spec":{"x":1}}', patchType=MERGE, oldObject=order(count=1)), 200, ""),
    (
        review("PATCH", patch={"spec": {"x": 1}}, patchType=MERGE, oldObject=order(count=1),
               options={"fieldValidation": "Strict"}),
        422,
        'strict decoding error: unknown field "spec.x"',
    ),
    (review("PATCH", patch=order(x=1), patchType=APPLY), 500, ".spec.x: field not declared in schema"),
    (review("PATCH", patch=yaml.safe_dump(order(count=3)), patchType=APPLY, oldObject=order()), 200, ""),
    (review("PATCH", patch="a: [", patchType=APPLY), 400, "error encoding patch"),
    (review("PATCH", patch={}, patchType=MERGE), 400, "needs oldObject"),
    (review("PATCH", patch={}, patchType="text/plain", oldObject=order()), 400, "none of application/"),
    (review("CREATE", object=order(), options={"fieldValidation": "x"}), 422, "CreateOptions.meta.k8s.io"),
    (review("CREATE"), 400, "CREATE needs object"),
    (review("CREATE", object=order(), oldObject=order()), 400, "CREATE has no oldObject"),
    (review("UPDATE", object=order()), 400, "UPDATE needs oldObject"),
    (review("UPDATE", object=order(), oldObject=1), 400, "oldObject must be an object"),
    (review("DELETE", object=order()), 400, "operation must be one of CREATE, UPDATE, PATCH"),
    (review("CREATE", object=order(), objekt=1), 400, 'unknown field "objekt"'),
    (review("CREATE", object={"apiVersion": "v1"}), 400, "Object 'Kind' is missing in"),
    (review("CREATE", object={"apiVersion": "v9", "kind": "Order"}), 404, "no document"),
]  # fmt: skip


def test_reviews_say_which_request_is_meant(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        for body, code, message in REVIEWS:
            status, _, told = await shop.post(body)
            assert (status, message in told.get("message", "")) == (code, True), (body, told)
        status, _, told = await shop.post(REVIEWS[1][0], "?report=1")
        assert (status, told["valid"], told["violations"][0]["line"]) == (200, False, 1)

    run(tmp_path, scenario)


def test_protobuf_is_refused_with_what_it_is(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x00"
        status, _, told = await shop.post(body, content_type="application/vnd.kubernetes.protobuf")
        assert (status, told["reason"]) == (415, "UnsupportedMediaType")
        assert f"kind ConfigMap of v1, {len(body)} bytes; " in told["message"]

    run(tmp_path, scenario)


def test_other_methods_and_paths(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            status, headers, body = await shop.client.get(PATH, method=method)
            assert (status, headers["Allow"], bool(body)) == (405, "POST", method != "HEAD")
        assert (await shop.client.get(f"{PATH}/", method="POST"))[0] == 404
        assert (await shop.client.get("/openapi/v3"))[0] == 200

    run(tmp_path, scenario)


async def test_nothing_is_there_unless_it_is_asked_for(tmp_path: Path) -> None:
    write_documents(tmp_path)
    async with service(directory("shop", tmp_path)) as client:
        await client.ready()
        assert (await client.get(PATH, method="POST"))[0] == 404


async def test_guard_is_asked_first(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("secret-of-alice,alice\n")
    documents = tmp_path / "documents"
    auth = AuthSettings(mode="token-file", token_file=tokens)
    async with shop(documents, auth=auth) as found:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            status, _, told = await found.post(order(count=1), **headers)
            assert (status, told["reason"]) == (401, "Unauthorized")
        status, _, told = await found.post(order(count=1), Authorization="Bearer secret-of-alice")
        assert (status, told["status"]) == (200, "Success")


async def test_cluster_reviews_the_verb_post(tmp_path: Path) -> None:
    asked = []

    def allows(spec: dict[str, Any]) -> bool:
        asked.append(spec["nonResourceAttributes"])
        return bool(spec["user"] == "alice")

    cluster = FakeCluster({}, None)
    cluster.review_token = lambda token: {"user": {"username": token}, "authenticated": True}
    cluster.allows = allows
    async with cluster:
        reviewing = KubernetesSettings(in_cluster=True, api_services=False, crds=False, apiserver=False)
        auth = AuthSettings(mode="kubernetes")
        source = backend("cluster", cluster.url)
        async with shop(tmp_path, cluster=source, auth=auth, kubernetes=reviewing) as found:
            status, _, _ = await found.post(order(count=1), Authorization="Bearer alice")
            assert status == 200
            status, _, told = await found.post(order(count=1), Authorization="Bearer bob")
            assert (status, told["reason"]) == (403, "Forbidden")
    assert {"path": PATH, "verb": "post"} in asked


def test_connection_is_kept_and_counted(tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        for fields, result in (({"count": 1}, "valid"), ({"count": 0}, "invalid")):
            before = shop.client.app.metrics.validations.labels(result)._value.get()
            _, headers, _ = await shop.post(order(**fields))
            assert "Connection" not in headers
            assert shop.client.app.metrics.validations.labels(result)._value.get() == before + 1
        assert shop.bodies == 0
        _, _, text = await shop.client.get("/metrics")
        assert b'route="validate"' in text

    run(tmp_path, scenario)
