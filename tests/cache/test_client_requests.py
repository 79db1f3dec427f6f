"""What the client asks for and what else it does: media types, parameters, bundles, resources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import cbor2
import pytest

from fakes.openapi_server import Reference, Reply, Request, document, serving
from shared_data import PUBLISHED, SHARED, documents, read
from specmux_cache import AsyncSchemaCache, GroupVersionNotFound, KindNotFound
from specmux_cache.errors import (
    MediaTypeRefused,
    RequestError,
)
from specmux_cache.reading.results import MediaTypes

if TYPE_CHECKING:
    pass
from cache.referred import APPS, CORE, Clock, cached, reference


def negotiating(media: str, *, status: int = 406) -> Any:
    """A server of CBOR, or one that answers it with a status whatever else is accepted."""
    backend = reference()
    body = b"\xd9\xd9\xf7" + cbor2.dumps(json.loads(CORE))

    def answer(request: Request) -> Reply:
        accept = request.headers.get("accept", "")
        if request.path == "/openapi/v3" or "cbor" not in accept:
            return backend(request)
        if media == "cbor":
            return Reply(200, body, [("Content-Type", "application/cbor"), ("Etag", '"c"')])
        return Reply(status)

    return answer


@pytest.mark.parametrize(
    ("allow", "prefer", "accept"),
    [
        (False, True, "application/json"),
        (True, False, "application/json, application/cbor;q=0.9"),
        (True, True, "application/cbor, application/json;q=0.9"),
    ],
)
async def test_accept_when_the_client_gates_are_set(tmp_path, allow, prefer, accept):
    async with (
        serving(reference()) as server,
        cached(server, tmp_path / "c", allow_cbor=allow, prefer_cbor=prefer) as cache,
    ):
        schema = await cache.schema("v1")
        assert (schema.media_type, schema.body) == ("application/json", CORE)
        assert server.requests[-1].headers["accept"] == accept
        assert (await cache.schema("v1")).from_cache


async def test_spec_when_the_server_has_cbor(tmp_path):
    async with (
        serving(negotiating("cbor")) as server,
        cached(server, tmp_path / "c", allow_cbor=True, prefer_cbor=True) as cache,
    ):
        assert (await cache.schema("v1")).media_type == "application/cbor"
        assert await cache.spec("v1") == json.loads(CORE)


@pytest.mark.parametrize("status", [406, 415])
async def test_refusal_when_a_server_has_no_cbor_is_remembered_for_the_document_and_ends(tmp_path, status):
    clock = Clock()

    async with (
        serving(negotiating("none", status=status)) as server,
        cached(
            server, tmp_path / "c", clock=clock, allow_cbor=True, prefer_cbor=True, refusal_ttl=600.0
        ) as cache,
    ):

        async def accepted() -> list[str]:
            await cache.invalidate("v1")
            before = len(server.seen("/openapi/v3/api/v1"))
            assert (await cache.schema("v1")).body == CORE
            return [r.headers["accept"] for r in server.seen("/openapi/v3/api/v1")[before:]]

        assert await accepted() == ["application/cbor, application/json;q=0.9", "application/json"]
        assert await accepted() == ["application/json"]
        # Another document is another target.
        await cache.schema("apps/v1")
        assert "cbor" in server.seen("/openapi/v3/apis/apps/v1")[0].headers["accept"]
        clock.now += 601
        assert await accepted() == ["application/cbor, application/json;q=0.9", "application/json"]


async def test_refusal_when_only_that_type_was_asked_for(tmp_path):
    async with serving(reference()) as server, cached(server, tmp_path / "c") as cache:
        for _ in range(2):
            with pytest.raises(MediaTypeRefused):
                await cache.schema("v1", media="cbor")
        assert len(server.seen("/openapi/v3/api/v1")) == 1


def patched(group: str, version: str, kind: str, *parameters: str) -> dict[str, Any]:
    gvk = {"group": group, "version": version, "kind": kind}
    listed = [{"name": name, "in": "query"} for name in parameters]
    return {f"/x/{kind}": {"patch": {"x-kubernetes-group-version-kind": gvk, "parameters": listed}}}


async def test_supports_when_asked_as_kubectl_asks(tmp_path):
    paths = patched("", "v1", "Namespace", "fieldValidation") | patched("", "v1", "Binding", "dryRun")
    backend = Reference({"api/v1": document("core", paths=paths)})

    async with serving(backend) as server, cached(server, tmp_path / "c") as cache:
        assert await cache.supports("v1", "Namespace")
        assert not await cache.supports("v1", "Binding", "fieldValidation")
        assert not await cache.supports("v1", "List")
        assert await cache.supports("example.com/v1", "Widget", is_custom=True)
        with pytest.raises(GroupVersionNotFound):
            await cache.supports("example.com/v1", "Widget")


def stated(kind: str, *, produces: list[str]) -> dict[str, Any]:
    """A resource as an apiserver states it: any type to create, patches by name."""
    named = {"x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": kind}}
    answers = {
        "responses": {"200": {"content": {name: {} for name in produces}}, "401": {"content": {"a/b": {}}}}
    }
    patches = ("application/apply-patch+cbor", "application/merge-patch+json")
    create = {"requestBody": {"content": {"*/*": {}}}, "x-kubernetes-action": "post"}
    patch = {"requestBody": {"$ref": "#/components/requestBodies/Patch"}, "x-kubernetes-action": "patch"}
    body = {"content": {name: {} for name in patches}}
    path = f"/api/v1/namespaces/{{namespace}}/{kind.lower()}s"
    paths = {
        path: {"post": named | answers | create, "get": named | answers | {"x-kubernetes-action": "list"}},
        f"{path}/{{name}}/status": {"patch": named | {"requestBody": {"content": {"wrong/one": {}}}}},
        f"{path}/{{name}}": {"patch": named | answers | patch},
    }
    return {**json.loads(document("core", paths=paths)), "components": {"requestBodies": {"Patch": body}}}


async def test_media_types_are_those_that_the_document_states(tmp_path):
    backend = Reference(
        {"api/v1": json.dumps(stated("Pod", produces=["application/json", "application/cbor"])).encode()}
    )
    async with serving(backend) as server, cached(server, tmp_path / "c") as cache:
        assert await cache.media_types("v1", "Pod", "create") == MediaTypes(
            ("*/*",), ("application/json", "application/cbor")
        )
        patch = await cache.media_types("api/v1", "Pod", "patch")
        assert patch.consumes == ("application/apply-patch+cbor", "application/merge-patch+json")
        assert (await cache.media_types("v1", "Pod", "watch")).consumes == ()
        for kind, verb in (("Pod", "delete"), ("Node", "create")):
            with pytest.raises(KindNotFound):
                await cache.media_types("v1", kind, verb)


@pytest.mark.parametrize(
    ("produces", "prefers", "sent"),
    [
        (["application/json", "application/cbor"], True, "application/cbor"),
        (["application/json", "application/cbor"], False, "application/json"),
        (["application/json"], True, "application/json"),
    ],
)
async def test_cbor_is_sent_where_it_is_preferred_and_stated(tmp_path, produces, prefers, sent):
    backend = Reference({"api/v1": json.dumps(stated("Pod", produces=produces)).encode()})
    options = {"allow_cbor": True, "prefer_cbor": prefers}
    async with serving(backend) as server, cached(server, tmp_path / "c", **options) as cache:
        assert await cache.media_type_to_send("v1", "Pod", "create") == sent
        assert await cache.media_type_to_send("v1", "Pod", "patch") == "application/json"


async def test_one_resource_that_takes_no_cbor_is_remembered_alone(tmp_path):
    clock = Clock()
    pods = stated("Pod", produces=["application/cbor"])
    nodes = stated("Node", produces=["application/cbor"])
    pods["paths"] |= nodes["paths"]
    options = {"allow_cbor": True, "prefer_cbor": True, "clock": clock}
    async with (
        serving(Reference({"api/v1": json.dumps(pods).encode()})) as server,
        cached(server, tmp_path / "c", **options) as cache,
    ):

        async def sent() -> list[str]:
            return [(await cache.media_type_to_send("v1", kind, "create"))[12:] for kind in ("Pod", "Node")]

        cache.note_unsupported("api/v1", "Pod", "create")
        assert await sent() == ["json", "cbor"]
        clock.now += cache.options.refusal_ttl + 1
        assert await sent() == ["cbor", "cbor"]
        cache.note_unsupported()
        assert await sent() == ["json", "json"]


async def test_prefetch_when_one_document_fails_stops_no_other(tmp_path):
    backend = reference()

    def answer(request: Request) -> Reply:
        return Reply(503) if request.path.endswith("/apps/v1") else backend(request)

    async with serving(answer) as server, cached(server, tmp_path / "c") as cache:
        done = await cache.prefetch()
        assert (done.fetched, done.present, list(done.failed)) == (("api/v1",), (), ["apis/apps/v1"])
        again = await cache.prefetch(["v1", "nope/v1"])
        assert (again.fetched, again.present) == ((), ("v1",))
        assert isinstance(again.failed["nope/v1"], GroupVersionNotFound)


async def test_prefetch_when_the_server_has_a_whole_release_keeps_it_for_later(tmp_path):
    specs = {name: read(path) for name, path in documents("1.35").items()}
    parts = 4 if (SHARED / PUBLISHED).exists() else 3  # prose is what takes the least

    async with serving(Reference(specs)) as server:
        async with cached(server, tmp_path / "c") as cache:
            done = await cache.prefetch()
            assert (set(done.fetched), dict(done.failed)) == (set(specs), {})
        async with cached(server, tmp_path / "c", root_ttl=60.0) as cache:
            assert set((await cache.prefetch()).present) == set(specs)
            assert await cache.supports("apps/v1", "Deployment", "fieldValidation")
        await server.stop()
        async with cached(server, tmp_path / "c", offline=True) as cache:
            for name, body in specs.items():
                assert (await cache.schema(name)).body == body
            assert (await cache.stats()).store.bytes_used < sum(map(len, specs.values())) / parts


async def test_merge_when_group_versions_are_named(tmp_path):
    async with serving(reference()) as server, cached(server, tmp_path / "c") as cache:
        merged = await cache.merge(["v1", "apps/v1"])
        assert merged.document["openapi"] == "3.0.0"
        assert not merged.renamed


async def test_partition_when_the_credentials_differ_shares_nothing_unless_named(tmp_path):
    async with serving(reference()) as server:
        for token, partition, expected in [
            ("a", None, False),
            ("a", None, True),
            ("b", None, False),
            ("b", "shared", False),
            ("c", "shared", True),
        ]:
            headers = {"Authorization": f"Bearer secret-{token}"}
            async with cached(server, tmp_path / "c", headers=headers, partition=partition) as cache:
                assert (await cache.schema("v1")).from_cache is expected
    stored = b"".join(path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file())
    assert b"secret-" not in stored


async def test_lossy_when_the_server_says_that_its_conversion_lost_something(tmp_path):
    backend = reference()

    def answer(request: Request) -> Reply:
        reply = backend(request)
        return Reply(reply.status, reply.body, [*reply.headers, ("Specmux-Losses", "2")])

    async with serving(answer) as server, cached(server, tmp_path / "c") as cache:
        assert [(await cache.schema("v1")).lossy for _ in range(2)] == [True, True]


async def test_document_when_the_server_forbids_to_store_it(tmp_path):
    backend = reference()

    def answer(request: Request) -> Reply:
        reply = backend(request)
        return Reply(reply.status, reply.body, [*reply.headers, ("Cache-Control", "no-store")])

    async with serving(answer) as server, cached(server, tmp_path / "c") as cache:
        assert [(await cache.schema("v1")).from_cache for _ in range(2)] == [False, False]
        assert (await cache.stats()).store.entries == 0


async def test_bundle_when_carried_to_another_place_works_offline(tmp_path):
    async with serving(reference()) as server:
        async with cached(server, tmp_path / "a", headers={"Authorization": "Bearer x"}) as cache:
            await cache.prefetch()
            assert await cache.export(tmp_path / "bundle.zip") == 3
        asked = len(server.requests)
        async with cached(server, tmp_path / "b", offline=True) as cache:
            assert await cache.import_(tmp_path / "bundle.zip") == 3
            assert (await cache.schema("apps/v1")).body == APPS
        assert len(server.requests) == asked


@pytest.mark.parametrize(
    "path", ["/metrics", "/api/../secrets", "openapi/v3", "http://evil.example/api", "//evil/api"]
)
async def test_resource_when_its_path_is_not_for_this_cache(tmp_path, path):
    async with serving(reference()) as server, cached(server, None) as cache:
        with pytest.raises(ValueError, match="path"):
            await cache.resource(path)
        assert not server.requests


async def test_resource_when_headers_would_tell_who_asks(tmp_path):
    async with serving(reference()) as server, cached(server, None) as cache:
        with pytest.raises(ValueError, match="credentials"):
            await cache.resource("/apis", headers={"Authorization": "Bearer x"})


async def test_resource_when_it_varies_keeps_variants_apart(tmp_path):
    def answer(request: Request) -> Reply:
        accept = request.headers.get("accept", "none")
        return Reply(200, accept.encode(), [("Vary", "Accept"), ("Cache-Control", "max-age=60")])

    async with serving(answer) as server, cached(server, tmp_path / "c") as cache:
        for _ in range(2):
            for accept in ("application/json", "application/json;as=APIGroupDiscoveryList"):
                found = await cache.resource("/apis", headers={"Accept": accept})
                assert found.body == accept.encode()
        assert len(server.requests) == 2


async def test_resource_when_the_status_is_an_error_is_given_and_not_kept(tmp_path):
    reply = Reply(404, b"no", [("Cache-Control", "max-age=60")])
    async with serving(lambda _: reply) as server, cached(server, tmp_path / "c") as cache:
        assert [(await cache.resource("/api")).status for _ in range(2)] == [404, 404]
        assert len(server.requests) == 2


async def test_calls_when_the_cache_is_not_open():
    with pytest.raises(RuntimeError, match="context manager"):
        await AsyncSchemaCache("http://127.0.0.1:1").paths()


async def test_request_errors_when_shown_have_no_foreign_text(tmp_path):
    reply = Reply(500, b"secret from the server\x1b[31m")
    async with serving(lambda _: reply) as server, cached(server, None) as cache:
        with pytest.raises(RequestError) as caught:
            await cache.paths()
        assert "secret" not in str(caught.value)


async def test_document_without_a_hash_when_the_server_is_down_stands_in(tmp_path):
    """The reference says no-cache there, as of its root; what to do in need is the client's to say."""
    fields = [("Cache-Control", "no-cache, private"), ("Etag", '"a"'), ("Content-Type", "application/json")]

    def answer(request: Request) -> Reply:
        if request.path == "/openapi/v3":
            return Reply(200, b'{"paths":{"apis":{"serverRelativeURL":"/openapi/v3/apis"}}}')
        return (
            Reply(304, headers=fields[:2]) if "if-none-match" in request.headers else Reply(200, CORE, fields)
        )

    async with serving(answer) as server, cached(server, tmp_path / "c") as cache:
        assert [(await cache.schema("apis")).from_cache for _ in range(2)] == [False, True]
        assert len(server.seen("/openapi/v3/apis")) == 2
        await server.stop()
        schema = await cache.schema("apis")
        assert (schema.body, schema.stale, schema.hash) == (CORE, True, "")


async def test_resource_when_a_header_is_too_long_to_keep_is_given_and_not_kept(tmp_path):
    reply = Reply(200, b"x", [("Vary", "X-Long"), ("Cache-Control", "max-age=60")])

    async with serving(lambda _: reply) as server, cached(server, tmp_path / "c") as cache:
        for _ in range(2):
            found = await cache.resource("/apis", headers={"X-Long": "v" * 30_000})
            assert (found.body, found.from_cache) == (b"x", False)
