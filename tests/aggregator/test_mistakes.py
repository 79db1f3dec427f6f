"""What users get wrong: each mistake is told in words that name it and the next step, with an exit code for
scripts, and never with a traceback."""

from __future__ import annotations

import gzip
import socket
import ssl
import string
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme
import yaml
from click.testing import CliRunner

from fakes.apiserver import document, swagger
from fakes.openapi_server import Reference, Reply, Request
from fakes.openapi_thread import serving_in_thread
from specmux_aggregator.cli import main

CONFIGS = {
    "empty": "",
    "syntax": "listen: [port\n",
    "tab": "listen:\n\tport: 1\n",
    "unknown-key": "listen:\n  prot: 8080\n",
    "unknown-group": "lisen:\n  port: 8080\n",
    "wrong-type": "listen:\n  port: eighty\n",
    "twice": "listen:\n  port: 1\nlisten:\n  port: 2\n",
    "no-url": "backends:\n- name: a\n",
    "bad-url": "backends:\n- {name: a, url: 'localhost:6443'}\n",
    "no-name": "backends:\n- {url: 'https://a'}\n",
    "same-name": "backends:\n- {name: a, url: 'https://a'}\n- {name: a, url: 'https://b'}\n",
    "dead": "backends:\n- {name: a, url: 'http://127.0.0.1:1'}\n",
    "list": "- a\n- b\n",
    "id": "severity: {field-removd: warning}\n",
}
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
"""
MANIFESTS = {
    "widget.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n",
    "typo.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {sise: 1}\n",
    "gadget.yaml": "apiVersion: other.com/v1\nkind: Gadget\nmetadata: {name: a}\n",
    "template.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n",
    "notes.txt": "hello\n",
    "sized.yaml": DEFINITION.replace(
        "{type: object}",
        "{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}",
    ),
}
KUBECONFIG = {
    "current-context": "gone",
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
}


@dataclass(frozen=True)
class Mistake:
    line: str
    """After ``specmux``; ``$dir`` is a folder of files, ``$ok`` and the like are servers."""
    code: int
    said: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


def wrong(line: str, code: int, *said: str, **environment: str) -> Mistake:
    return Mistake(line, code, said, tuple(environment.items()))


MISTAKES = [
    # The command line itself.
    wrong("", 2, "Usage: specmux"),
    wrong("serv", 2, "No such command 'serv'", "serve"),
    wrong("--verison", 2, "No such option", "--version"),
    wrong("-o xml version", 2, "'xml' is not one of", "json"),
    wrong("-v -q version", 2, "contradict each other"),
    wrong("help nothing", 2, 'no command "nothing"', "specmux --help"),
    wrong("completion powershell", 2, "'powershell' is not one of", "bash"),
    wrong("completion", 2, "Missing argument"),
    # serve
    wrong("serve", 2, "nothing to serve", "--backend NAME=URL"),
    wrong("serve --directory $dir/none", 3, "does not exist", "none"),
    wrong("serve --directory $dir/v3.json", 3, "is a file"),
    wrong("serve --config $dir/none.yaml", 3, "none.yaml", "No such file"),
    wrong("serve --config $dir/syntax.yaml", 3, "syntax.yaml:"),
    wrong("serve --config $dir/tab.yaml", 3, "tab.yaml:2"),
    wrong("serve --config $dir/unknown-key.yaml", 3, "unknown-key.yaml:2", "prot", "port"),
    wrong("serve --config $dir/unknown-group.yaml", 3, "lisen", "listen"),
    wrong("serve --config $dir/wrong-type.yaml", 3, "wrong-type.yaml:2", "listen.port"),
    wrong("serve --config $dir/empty.yaml", 2, "nothing to serve", "empty.yaml names no backends"),
    wrong("serve --config $dir/list.yaml", 3, "list.yaml:1"),
    wrong("serve --config $dir/twice.yaml", 3, "twice.yaml:3", "listen"),
    wrong("serve --backend a", 2, "wants NAME=URL"),
    wrong("serve --backend a=ftp://b", 2, "http:// or https://"),
    wrong("serve --backend a=http://me:secret@b", 2, "user name or password", "by file"),
    wrong("serve --backend a=http://b --backend a=http://c", 3, "is the name of two backends"),
    wrong("serve --backend a=http://b --listen-port abc", 2, "--listen-port"),
    wrong("serve --backend a=http://b --listen-port 70000", 2, "70000 is more than 65535"),
    wrong("serve --backend a=http://b --listen-prot 1", 2, "No such option", "--listen-port"),
    wrong("serve --backend a=http://b --listen-tls-cert-file x", 3, "both tls_cert_file and tls_key_file"),
    wrong("serve --backend a=http://b --auth-mode oauth", 2, "oauth", "mtls"),
    wrong("serve --backend a=http://b --auth-mode token-file", 3, "needs auth.token_file"),
    wrong("serve --backend a=http://b --auth-mode kubernetes", 3, "needs kubernetes.in_cluster"),
    wrong("serve --backend a=http://b --auth-token-file $dir/token", 3, "has no effect", "auth.mode is none"),
    wrong(
        "serve --backend a=http://b --listen-port 0 --auth-mode token-file --auth-token-file $dir/token",
        3, "wants token,name", "--token-file",
    ),
    wrong("serve --backend a=http://b --log-level loud", 2, "loud", "warning"),
    wrong("serve --kubeconfig $dir/none", 3, "none", "No such file"),
    wrong("serve --kubeconfig $dir/kubeconfig", 3, 'no context "gone"', "known: here"),
    wrong("serve --in-cluster", 3, "not inside a cluster"),
    wrong("serve --in-cluster --context here", 3, "it can be only one"),
    wrong("serve --backend a=http://b", 3, "SPECMUX_LISTEN_PROT: no such setting", SPECMUX_LISTEN_PROT="1"),
    wrong("demo --port $taken", 4, "cannot listen on 127.0.0.1:$taken: address already in use"),
    wrong("ui --directory $dir/several --port $taken", 4, "already in use; port 0 takes a free one"),
    wrong("serve --directory $dir/several --listen-address nope.invalid", 4, "host name does not resolve"),
    wrong("serve --backend a=http://b", 3, "did you mean SPECMUX_LISTEN_PORT?", SPECMUX_LISTEN_PROT="1"),
    wrong("serve --backend a=http://b --listen-port $taken", 4, "already in use; port 0 takes a free one"),
    wrong("get --server http://nope.invalid", 4, "name does not resolve; check its spelling"),
    wrong(
        "cache fetch kubernetes:1.36 --from http://nope.invalid/x",
        4, "name does not resolve; check its spelling",
    ),
    # check-config
    wrong("check-config $dir/none.yaml", 3, "No such file"),
    wrong("check-config", 2, "Missing argument"),
    wrong("check-config -", 2, "a configuration is a file"),
    wrong("diff - -", 2, "can be read once"),
    wrong("diff $dir/v3.json - --policy -", 2, "can be read once"),
    wrong("diff $dir/v3.json $dir/v3.json --write-baseline -", 2, "- is standard output"),
    wrong("cache paths", 2, "give --server URL or --kubeconfig FILE"),
    wrong("check-config $dir/no-url.yaml", 3, "no-url.yaml:2", "url"),
    wrong("check-config $dir/bad-url.yaml", 3, "bad-url.yaml:2", "http:// or https://"),
    wrong("check-config $dir/no-name.yaml", 3, "no-name.yaml:2", "name"),
    wrong("check-config $dir/same-name.yaml", 3, "same-name.yaml:3", "the name of another backend"),
    wrong("check-config $dir/dead.yaml --probe", 4, "refused"),
    # convert
    wrong("convert $dir/none.json", 3, "does not exist"),
    wrong("convert $dir/broken.json", 3, "broken.json", "not JSON", "line 1"),
    wrong("convert $dir/nothing.json", 3, "there is nothing in it"),
    wrong("convert $dir/chart.yaml", 3, "neither Swagger 2.0, OpenAPI 3.0 nor"),
    wrong("convert $dir/bare", 3, "bare: no document in it"),
    wrong("convert $dir/others", 3, "no document in it can be read", "values.yaml"),
    wrong("convert $dir/several", 3, "2 documents", "--split DIR"),
    wrong("convert $dir/v3.json --to xml", 2, "'xml' is not one of", "yaml"),
    wrong("convert $dir/v3.json --profile swagger", 2, "'swagger' is not one of", "oas"),
    wrong("convert $dir/crd.yaml", 3, "2 group-versions", "--split"),
    wrong("convert $dir/cut.json.gz", 3, "cut.json.gz", "gzip"),
    wrong("convert -", 3, "there is nothing in it"),
    wrong("convert", 2, "Missing argument"),
    # merge
    wrong("merge $dir/none", 3, "does not exist", "git:REV:PATH"),
    wrong("merge git:nothing", 3, "must be written as git:REV:PATH"),
    wrong("merge http://127.0.0.1:1", 4, "http://127.0.0.1:1", "refused"),
    wrong("merge http://me:secret@b", 2, "user name or password"),
    wrong("merge $dir/bare", 3, "no document in it"),
    wrong("merge $dir/several -o all.json", 2, "'all.json' is not one of", "yaml"),
    wrong("merge kubernetes:1.99", 2, 'no release "1.99"', "1.30 to 1.37"),
    # servers, through the cache
    wrong("cache paths", 2, "no kubeconfig", "--server URL"),
    wrong("cache lst", 2, "No such command 'lst'"),
    wrong("cache paths --server ftp://a", 2, "http:// or https://"),
    wrong("cache paths --server http://127.0.0.1:1", 4, "refused"),
    wrong("cache paths --server $refusing401", 4, "401: Unauthorized by policy", "--token-file"),
    wrong("cache paths --server $refusing403", 4, "403: Unauthorized by policy", "system:discovery"),
    wrong("cache paths --server $html", 4, "of another type", "check the URL"),
    wrong("cache get nothing/v1 --server $ok", 1, "has no nothing/v1"),
    wrong("cache get v1 --server $ok --media xml", 4, "406", "omit --media"),
    wrong("cache get v1 --server $ok --offline", 1, "is not in the cache", "without --offline"),
    wrong("cache get --server $ok", 2, "Missing argument"),
    wrong("cache paths --server $ok --token-file $dir/tokens.csv", 3, "holds token,name", "the token alone"),
    wrong("cache paths --server $ok --token-file $dir/none", 3, "does not exist"),
    wrong("cache paths --server $tls", 4, "certificate was refused", "issuer", "--ca-file"),
    wrong("cache paths --server $tls --ca-file $dir/v3.json", 3, "no CA certificates"),
    wrong("cache paths --server $tls_as_http", 4, "begins with https://"),
    wrong("cache paths --server $plain_as_https", 4, "no TLS connection", "begins with http://"),
    wrong("cache paths --server $ok --client-key $dir/token", 2, "--client-key needs --client-certificate"),
    wrong("cache paths --server $ok --context here", 2, "different sources", "one of them"),
    wrong("cache paths --kubeconfig $dir/kubeconfig --context prod", 3, 'no context "prod"', "known: here"),
    wrong("cache compact --max-bytes -1", 2, "-1"),
    wrong("cache compact --max-bytes 5XB", 2, "256MiB"),
    wrong("cache import $dir/none --server $ok", 3, "none", "does not exist"),
    wrong("cache import $dir/v3.json --server $ok", 3, "v3.json"),
    # status, get, init
    wrong("status http://127.0.0.1:1", 4, "refused", "is it running"),
    wrong("status $ok", 4, "no /status there", "a specmux service"),
    wrong("status $html", 4, "it is not a specmux service"),
    wrong("get nothing/v1 --server $ok", 1, "has no nothing/v1", "it has api/v1"),
    wrong("get v1 --directory $dir/none", 3, "does not exist"),
    wrong("get api --server $ok", 1, "has no api", "did you mean api/v1?"),
    wrong("get api/v2 --server $odd", 1, "has no api/v2", "it has api/v1, apis/gone.io/v1"),
    wrong("get gone.io/v1 --server $odd", 4, "apis/gone.io/v1", "404"),
    wrong("explain gizmo --server $odd", 1, "1 document not read: apis/gone.io/v1", "404"),
    wrong("get -w -o json --server $ok", 2, "--watch prints lines of text"),
    wrong("get --server $redirect", 4, "name https://login.example.com/in, or log in there"),
    wrong("status $redirect", 4, "redirects to https://login.example.com/in; name that URL, or log in there"),
    wrong("get --kubeconfig $dir/no-clusters", 3, 'names the cluster "zz"; the kubeconfig has no clusters'),
    wrong("get", 0, "SPECMUX_SEVER is set and not read; did you mean SPECMUX_SERVER?", SPECMUX_SEVER="http://a"),
    wrong("get", 2, "SPECMUX_SERVER: wants a URL", SPECMUX_SERVER="nonsense"),
    wrong("get --server $html", 4, "text/html", "a login page?"),
    wrong("get v1 --directory $dir/bare", 3, "no document in it", ".yaml"),
    wrong("get v1 --directory $dir/others", 3, "no document in it can be used", "values.yaml"),
    wrong("get v1 -w --directory $dir/several", 2, "--watch is for servers"),
    wrong("get v1 --offline --directory $dir/several", 2, "--offline is for servers"),
    wrong("init $dir/dead.yaml", 2, "is there already", "--force"),
    wrong("init $dir/notes.txt/specmux.yaml", 3, "File exists"),
    # validate
    wrong("validate", 2, "Missing argument"),
    wrong("validate $dir/none.yaml", 3, "none.yaml: no such file or folder"),
    wrong("validate $dir/widget.yaml", 1, "no cluster: Kubernetes 1.37's own kinds", "--directory"),
    wrong("validate --file $dir/crd.yaml $dir/bare", 3, "bare: no manifest in it", ".yaml"),
    wrong("validate --file $dir/crd.yaml $dir/empty.yaml", 5, "nothing was validated", "--allow-empty"),
    wrong("validate --file $dir/crd.yaml $dir/template.yaml", 1, "template.yaml:4", "helm template CHART"),
    wrong("validate --file $dir/crd.yaml $dir/gadget.yaml", 1, "no kind", "--ignore-missing-schemas"),
    wrong("validate --file $dir/crd.yaml --skip widgets $dir/widget.yaml", 0, "did you mean Widget?"),
    wrong("validate --file $dir/sized.yaml $dir/typo.yaml", 1, "typo.yaml:4", 'unknown field "spec.sise"'),
    wrong("validate --file $dir/crd.yaml $dir/binary.yaml", 1, "binary.yaml:1", "control characters"),
    wrong("validate --file $dir/crd.yaml $dir/utf16.yaml", 0),
    wrong("validate --file $dir/none.json $dir/widget.yaml", 3, "does not exist"),
    wrong("validate --field-validation strickt $dir/widget.yaml", 2, "'strickt' is not one of", "strict"),
    wrong("validate -o xml $dir/widget.yaml", 2, "'xml' is not one of", "junit"),
    wrong("-o yaml check $dir/crd.yaml", 2, "cannot be printed as yaml", "json"),
    wrong("validate --workers 0 $dir/widget.yaml", 2, "0 is not in the range"),
    wrong("validate --server http://127.0.0.1:1 $dir/widget.yaml", 4, "refused"),
    # explain, search
    wrong("explain", 2, "Missing argument"),
    wrong("explain widget", 1, "(--release chooses another)", "no kind", "--directory DIR"),
    wrong("explain widgit --file $dir/crd.yaml", 1, "'widgit'", "did you mean Widget"),
    wrong("explain gizmo --file $dir/crd.yaml", 1, "'gizmo'", "known: Widget"),
    wrong("explain thing --file $dir/v3.json", 1, "describe no kind at all"),
    wrong("explain widget.spec.sise --file $dir/sized.yaml", 1, '"sise" does not exist', "mean size?"),
    wrong("explain widget.spec.gears --file $dir/sized.yaml", 1, '"gears" does not exist', "are listed"),
    wrong("explain widget..spec --file $dir/crd.yaml", 2, "unexpected '.' at 7"),
    wrong("explain widget --api-version v3 --file $dir/crd.yaml", 1, "in v3", "it is in example.com/v1"),
    wrong("explain widget spec --file $dir/crd.yaml", 2, "unexpected extra argument", "widget.spec"),
    wrong("explain .spec.x --file $dir/crd.yaml", 2, "a type comes first", "pods.spec.x"),
    wrong("explain $$.spec.x --file $dir/crd.yaml", 2, "a type comes first", "pods.spec.x"),
    wrong("explain v9/Widget --file $dir/crd.yaml", 1, "in v9"),
    wrong("explain widget --directory $dir/bare", 3, "no document in it", ".json"),
    wrong("explain widget --file $dir/notes.txt", 3, "notes.txt", "not a YAML mapping"),
    wrong("explain widget --server 127.0.0.1:8080", 2, "http:// or https://"),
    wrong("explain widget --server http://127.0.0.1:1", 4, "refused"),
    wrong("search", 2, "Missing argument"),
    wrong("search size --server http://127.0.0.1:1 --offline", 3, "not in the cache", "specmux cache warm"),
    wrong("search zzz --file $dir/crd.yaml", 1, "nothing found", "fewer or shorter"),
    wrong("search size --limit 0 --file $dir/crd.yaml", 2, "0 is not in the range"),
    wrong("search size --group none --file $dir/crd.yaml", 1, 'no group "none"', "known: example.com"),
    # diff, check
    wrong("diff $dir/v3.json", 2, "Missing argument 'NEW'"),
    wrong("diff $dir/v3.json ftp://a/b", 3, "no such file or folder", "git:REV:PATH"),
    wrong("diff 672BD5C51522 $dir/v3.json", 2, "the beginning of a hash", "specmux status -o json"),
    wrong("diff 672BD5C51522 E70612345678 -g v1 --server http://127.0.0.1:1", 2, "of a hash", "128"),
    wrong("diff $dir/v3.json $dir/bare", 3, "no document in it"),
    wrong("diff $dir/v3.json $dir/notes.txt", 3, "notes.txt: (document): not a YAML mapping"),
    wrong("diff $dir/v3.json $dir/v3.json -g apps/v1", 3, "neither has apis/apps/v1", "all are compared"),
    wrong("diff $dir/v3.json $dir/v3.json --state $dir/none", 3, "does not exist"),
    wrong("diff 672BD5C51522 E7060123AAFF -g v1 --server $ok", 2, "the beginning of a hash"),
    wrong("diff $dir/v3.json $dir/v3.json --server $ok", 2, "--server is for two hashes"),
    wrong("diff $dir/v3.json $dir/v3.json --policy $dir/list.yaml", 3, "list.yaml"),
    wrong("diff $dir/v3.json $dir/v3.json --policy $dir/id.yaml", 3, "id.yaml", "mean field-removed?"),
    wrong("diff $dir/v3.json $dir/v3.json --context prod", 2, "OLD or NEW", "context:NAME"),
    wrong("diff git:nothing $dir/v3.json", 3, "git:REV:PATH"),
    wrong("check --release 1.29", 2, 'no release "1.29"', "1.30 to 1.37"),
    wrong("check $dir/none.json", 3, "does not exist"),
    wrong("check - --file -", 2, "standard input (-) can be read once"),
    wrong("check $dir/notes.txt", 3, "notes.txt: error: not a YAML mapping"),
    wrong("check $dir/v3.json -g apps/v1", 2, "--group-version is for servers"),
    wrong("check $dir/v3.json -o xml", 2, "'xml' is not one of", "sarif"),
    # schemas, mcp, ui
    wrong("schemas $dir/out --release 1.29", 2, "1.30 to 1.37", "v1.35.0"),
    wrong("schemas http://a/schemas --file $dir/crd.yaml", 2, "into a folder"),
    wrong("schemas $dir/v3.json --file $dir/crd.yaml", 3, "v3.json: not a folder"),
    wrong("schemas $dir/out --file $dir/crd.yaml --kinds Gadget", 3, "no kind has this name", "nothing"),
    wrong("schemas $dir/out --file $dir/crd.yaml --release 1.35", 2, "v1.35.0"),
    wrong("schemas $dir/out --file $dir/crd.yaml --base-url schemas", 2, "http://… or https://…"),
    wrong("mcp --release 1.37 --server $ok", 2, "different sources", "one of them"),
    wrong("mcp --directory $dir/bare", 3, "no document in it"),
    wrong("mcp --file $dir/crd.yaml --against $dir/none", 3, "no such file or folder", "context:NAME"),
    wrong("mcp --http --port 0", 2, "0 is not in the range"),
    wrong("ui --release 1.37 --directory $dir", 2, "different sources", "one of them"),
    wrong("ui --directory $dir/none", 3, "does not exist"),
    wrong("ui --directory $dir/several --context here", 2, "different sources"),
    # and what came since
    wrong("warm", 2, "No such command 'warm'", "cache warm"),
    wrong("valdate $dir/widget.yaml", 2, "No such command 'valdate'", "validate"),
    wrong("demo --port 99999", 2, "99999 is not in the range"),
    wrong("status 127.0.0.1:8080", 2, "http:// or https://", "such as http://127.0.0.1:8080"),
    wrong("status $ok --server $html", 2, "different services", "one of them"),
    wrong("status --offline", 2, "No such option"),
    wrong("validate -f $dir/v3.json", 2, "manifests are arguments"),
    wrong("explain -f $dir/crd.yaml widget", 2, "--file names documents"),
    wrong("ui --file $dir/crd.yaml", 2, "--directory names a folder of documents"),
    wrong("merge $dir/several --server $ok", 2, "different sources", "one of them"),
    wrong("merge $dir/several --offline", 2, "--offline is for servers"),
    wrong("cache ls --server nope", 2, "http:// or https://"),
    wrong("cache export $dir/x.bundle --server http://127.0.0.1:2", 1, "nothing of this", "cache warm"),
    wrong("serve --kubeconfig $dir/v3.json", 3, "v3.json", "no current-context"),
    wrong(
        "serve --directory $dir/several --listen-port 0 --listen-tls-cert-file $dir/token"
        " --listen-tls-key-file $dir/token",
        3, "/token", "no PEM certificate or private key",
    ),
    wrong("check-config $dir/notes.txt", 3, "notes.txt:1", "wants a mapping"),
]  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("mistakes")
    _write(folder)
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    documents = Reference({"api/v1": document("api/v1")})
    more = Reference({"api/v1": document("api/v1"), "apis/gone.io/v1": document("apis/gone.io/v1")})

    def refusing(request: Request) -> Reply:
        status = int(request.path.split("/")[1])
        body = b'{"kind": "Status", "message": "Unauthorized by policy"}'
        return Reply(status, body, [("Content-Type", "application/json")])

    def page(_: Request) -> Reply:
        return Reply(200, b"<html>", [("Content-Type", "text/html")])

    def lacking(request: Request) -> Reply:
        return Reply(404) if request.path.endswith("/apis/gone.io/v1") else more(request)

    def login(_: Request) -> Reply:
        return Reply(302, headers=[("Location", "https://login.example.com/in?next=secret@b")])

    with (
        serving_in_thread(documents) as ok,
        serving_in_thread(lacking) as odd,
        serving_in_thread(login) as redirect,
        serving_in_thread(refusing) as refuser,
        serving_in_thread(page) as html,
        serving_in_thread(documents, tls=tls) as safe,
        ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as plain,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        thread = threading.Thread(target=plain.serve_forever, daemon=True)
        thread.start()
        yield {
            "dir": str(folder),
            "ok": ok.url,
            "plain_as_https": f"https://127.0.0.1:{plain.server_address[1]}",
            "refusing401": f"{refuser.url}/401",
            "refusing403": f"{refuser.url}/403",
            "html": html.url,
            "odd": odd.url,
            "redirect": redirect.url,
            "tls": safe.url,
            "tls_as_http": safe.url.replace("https:", "http:"),
            "taken": str(taken.getsockname()[1]),
        }
        plain.shutdown()
        thread.join()


def _write(folder: Path) -> None:
    for name, text in CONFIGS.items():
        (folder / f"{name}.yaml").write_text(text)
    for name in ("bare", "others", "several", "crds"):
        (folder / name).mkdir()
    for name in ("chart.yaml", "others/values.yaml", "others/chart.yaml"):
        (folder / name).write_text("kind: Kustomization\n")
    (folder / "several/swagger.json").write_bytes(swagger("api/v1"))
    (folder / "several/apps.json").write_bytes(document("apis/apps/v1"))
    (folder / "v3.json").write_bytes(document("api/v1"))
    (folder / "broken.json").write_text('{"openapi": ')
    (folder / "nothing.json").write_text("")
    (folder / "cut.json.gz").write_bytes(gzip.compress(document("api/v1"))[:-9])
    (folder / "crd.yaml").write_text(DEFINITION)
    (folder / "crds/crd.yaml").write_text(DEFINITION)
    for name, text in MANIFESTS.items():
        (folder / name).write_text(text)
    (folder / "token").write_text("s3cret\n")
    (folder / "tokens.csv").write_text("s3cret,alice\n")
    (folder / "kubeconfig").write_text(yaml.safe_dump(KUBECONFIG))
    here = {"name": "here", "context": {"cluster": "zz", "user": "u"}}
    bare = {**KUBECONFIG, "current-context": "here", "contexts": [here], "clusters": []}
    (folder / "no-clusters").write_text(yaml.safe_dump(bare))
    (folder / "binary.yaml").write_bytes(bytes(range(256)))
    (folder / "utf16.yaml").write_text(MANIFESTS["widget.yaml"], encoding="utf-16")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.line or "nothing")
def test_a_mistake_is_told_with_the_next_step(
    mistake: Mistake, places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "SPECMUX_SERVER", "SPECMUX_CONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    environment = {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        **dict(mistake.environment),
    }
    line, *expected = (string.Template(each).substitute(places) for each in (mistake.line, *mistake.said))
    result = CliRunner(env=environment).invoke(main, line.split(), prog_name="specmux")
    said = " ".join(result.output.split())
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert [part for part in expected if part not in said] == [], said
    assert result.exit_code == mistake.code, said
    assert "Traceback" not in said
    assert "s3cret" not in said
    assert "secret@" not in said


def test_there_are_as_many_as_were_tried() -> None:
    assert len({mistake.line for mistake in MISTAKES}) >= 160
