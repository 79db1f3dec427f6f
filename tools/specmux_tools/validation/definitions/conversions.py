"""Checks the conversion strategy of a definition: None or Webhook (apiextensions,
validateCustomResourceConversion; apiserver, pkg/util/webhook/validation.go).

A caBundle has to contain a readable certificate (client-go, transport: rootCertPool; Go, encoding/pem,
crypto/x509). The frame of a certificate is parsed like in Go, but no key or extension.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_converters.json_values import mapping
from specmux_tools.validation.definitions.definition_fault import DefinitionFault, fault
from specmux_tools.validation.field_errors import show_value, unsupported
from specmux_tools.validation.metadata.names import label_1035_faults, subdomain_faults
from specmux_tools.validation.report import Path
from specmux_tools.validation.schema.urls import BadUrl, read_url

_CONVERTERS: Final = ("None", "Webhook")
_REVIEWS: Final = ("v1", "v1beta1")
_WEBHOOK: Final = "Webhook"
_PATH: Final[Path] = ("spec", "conversion")
_FORM: Final = "; desired format: https://host[/path]"
_BLOCK: Final = re.compile(
    rb"^-----BEGIN ([^\n]*)-----[ \t\r]*\n(.*?)^-----END \1-----[ \t\r]*(?:\n|\Z)", re.MULTILINE | re.DOTALL
)
_SEQUENCE: Final = 0x30
_INTEGER: Final = 0x02
_VERSION: Final = 0xA0
_FIELDS: Final = (
    (_INTEGER, "serial number"),
    (_SEQUENCE, "signature algorithm identifier"),
    (_SEQUENCE, "issuer"),
    (_SEQUENCE, "validity"),
    (_SEQUENCE, "issuer"),  # also the subject
    (_SEQUENCE, "spki"),
)


def conversion_faults(
    spec: Mapping[str, Any], *, needs_known_review: bool = True, takes_any_bundle: bool = True
) -> Iterator[DefinitionFault]:
    if not isinstance(spec.get("conversion"), dict):
        return
    conversion = mapping(spec["conversion"])
    strategy = conversion.get("strategy") or ""
    if strategy != "None" and spec.get("preserveUnknownFields") is True:
        words = "must be None if spec.preserveUnknownFields is true"
        yield fault((*_PATH, "strategy"), f"Invalid value: {show_value(strategy)}: {words}")
    if not strategy:
        yield fault((*_PATH, "strategy"), "Required value")
    elif strategy not in _CONVERTERS:
        yield fault((*_PATH, "strategy"), unsupported(strategy, _CONVERTERS))
    webhook = mapping(conversion.get("webhook"))
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == _WEBHOOK:
        yield from _client_faults(client, takes_any_bundle=takes_any_bundle)
        yield from _review_faults(reviews, needs_known=needs_known_review)
        return
    words = "Forbidden: should not be set when strategy is not set to Webhook"
    if client is not None:
        yield _in_webhook("clientConfig", words)
    if reviews:
        yield _in_webhook("conversionReviewVersions", words)


def is_known_review(versions: Iterable[Any]) -> bool:
    return any(each in _REVIEWS for each in versions)


def _in_webhook(key: str, text: str, *below: str | int) -> DefinitionFault:
    """Upstream's texts say webhookClientConfig and omit the enclosing webhook."""
    place = "spec.conversion." + ("webhookClientConfig" if key == "clientConfig" else key)
    for each in below:
        place += f"[{each}]" if isinstance(each, int) else f".{each}"
    return DefinitionFault((*_PATH, "webhook", key, *below), f"{place}: {text}")


def _client_faults(client: Any, *, takes_any_bundle: bool) -> Iterator[DefinitionFault]:
    if not isinstance(client, Mapping):
        yield _in_webhook("clientConfig", "Required value: required when strategy is set to Webhook")
        return
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield _in_webhook("clientConfig", "Required value: exactly one of url or service is required")
    elif isinstance(url, str):
        for text in _url_faults(url):
            yield _in_webhook("clientConfig", text, "url")
    elif isinstance(service, Mapping):
        for key, text in _service_faults(service):
            yield _in_webhook("clientConfig", text, "service", key)
    bundle = client.get("caBundle")
    if not isinstance(bundle, str) or not bundle or takes_any_bundle:
        return
    if unread := bundle_fault(bundle):
        words = f"unable to load root certificates: {unread}"
        yield _in_webhook("clientConfig", f"Invalid value: {quote_text(bundle)}: {words}", "caBundle")


def _url_faults(text: str) -> Iterator[str]:
    try:
        url = read_url(text)
    except BadUrl as error:
        yield f"Required value: url must be a valid URL: parse {quote_text(text)}: {error}{_FORM}"
        return
    if url.scheme != "https":
        yield f"Invalid value: {quote_text(url.scheme)}: 'https' is the only allowed URL scheme{_FORM}"
    if not url.host:
        yield f'Invalid value: "": host must be specified{_FORM}'
    for part, words in (
        (url.user, "user information is not permitted in the URL"),
        (url.fragment, "fragments are not permitted in the URL"),
        (url.query, "query parameters are not permitted in the URL"),
    ):
        if part:
            yield f"Invalid value: {quote_text(part)}: {words}"


def _service_faults(service: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    # Upstream swaps the two arguments: a missing name is reported as a missing namespace.
    for key, other in (("name", "namespace"), ("namespace", "name")):
        if not service.get(other):
            yield key, "Required value"
    port = service.get("port")
    if isinstance(port, int) and not 1 <= port <= 65535:
        yield "port", f"Invalid value: {port}: port is not valid: must be between 1 and 65535, inclusive"
    path = service.get("path")
    if isinstance(path, str) and path not in ("", "/"):
        for words in _path_faults(path):
            yield "path", f"Invalid value: {quote_text(path)}: {words}"


def _path_faults(path: str) -> Iterator[str]:
    if path == "//":
        yield "segment[0] may not be empty"
        return
    if not path.startswith("/"):
        yield "must start with a '/'"
    for index, step in enumerate(path[1:].removesuffix("/").split("/")):
        if not step:
            yield f"segment[{index}] may not be empty"
        else:
            yield from (f"segment[{index}]: {each}" for each in subdomain_faults(step))


def _review_faults(reviews: Any, *, needs_known: bool) -> Iterator[DefinitionFault]:
    key = "conversionReviewVersions"
    if not isinstance(reviews, list) or not reviews:
        yield _in_webhook(key, "Required value")
        return
    for index, version in enumerate(reviews):
        if version in reviews[:index]:
            yield _in_webhook(key, f"Invalid value: {show_value(version)}: duplicate version", index)
        elif isinstance(version, str):
            for each in label_1035_faults(version):
                yield _in_webhook(key, f"Invalid value: {quote_text(version)}: {each}", index)
    if needs_known and not is_known_review(reviews):
        words = f"must include at least one of {', '.join(_REVIEWS)}"
        yield _in_webhook(key, f"Invalid value: {show_value(reviews)}: {words}")


class _MalformedElement(ValueError):
    pass


def bundle_fault(text: str) -> str:
    """Why a caBundle yields no certificate, in upstream's words; "" if it yields one."""
    try:
        data = base64.b64decode(text)
    except ValueError:
        return "unable to parse bytes as PEM block"
    blocks = list(_blocks(data))
    faults = [_certificate_fault(der) for kind, der, _ in blocks if kind == b"CERTIFICATE"]
    if "" in faults:
        return ""
    if faults:
        return f"failed to parse certificate: {faults[0]}"
    is_read = bool(blocks) and blocks[-1][2] == len(data)
    return "no valid certificate authority data seen" if is_read else "unable to parse bytes as PEM block"


def _blocks(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Yields the type, the content and the end of each block."""
    for block in _BLOCK.finditer(data):
        if b":" in block[2]:  # a block with headers, which upstream skips
            yield b"", b"", block.end()
            continue
        try:
            yield block[1], base64.b64decode(b"".join(block[2].split()), validate=True), block.end()
        except ValueError:
            continue


def _certificate_fault(der: bytes) -> str:
    what = "certificate"
    try:
        content, rest = _element(der, _SEQUENCE)
        what = "tbs certificate"
        fields, outer = _element(content, _SEQUENCE)
        what = "version"
        if fields[:1] == bytes([_VERSION]):
            version, fields = _element(fields, _VERSION)
            if _element(version, _INTEGER)[1]:
                raise _MalformedElement
        algorithm = b""
        for tag, what in _FIELDS:
            value, fields = _element(fields, tag)
            if what.startswith("signature"):
                algorithm = value
                what = "algorithm identifier"
                if _element(outer, _SEQUENCE)[0] != algorithm:
                    return "x509: inner and outer signature algorithm identifiers don't match"
    except _MalformedElement:
        return f"x509: malformed {what}"
    return "x509: trailing data" if rest else ""


def _element(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of a DER element, and what follows it."""
    if len(data) < 2 or data[0] != tag:
        raise _MalformedElement
    start, size = 2, data[1]
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
        if not 0x80 <= size < 2**32 or data[2] == 0 or start > 6:
            raise _MalformedElement
    if len(data) < start + size:
        raise _MalformedElement
    return data[start : start + size], data[start + size :]
