"""URLs (apiserver, pkg/cel/library/urls.go)."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.go.text import quote_text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload, member
from specmux_tools.validation.rules.cel.checking.types import BOOL, STRING, list_of, map_of, struct
from specmux_tools.validation.rules.cel.values.values import CelError, LiteralMap, Opaque
from specmux_tools.validation.schema.urls import BadUrl, GoUrl, read_url, url_fault

URL: Final = struct("kubernetes.URL")


@dataclass(frozen=True, slots=True)
class UrlValue(Opaque):
    url: GoUrl
    type_name = URL.name


def _url(text: str) -> UrlValue:
    fault = url_fault(text)
    if fault is None:
        try:
            return UrlValue(read_url(text))
        except BadUrl as bad:
            fault = f"parse {quote_text(text)}: {bad}"
    raise CelError(f"URL parse error during conversion from string: {fault}")


def _query(value: UrlValue) -> LiteralMap:
    return LiteralMap((key, tuple(values)) for key, values in value.url.queries().items())


def _part(name: str, getter: Any) -> Any:
    return (member(name, (URL,), STRING, getter),)


URLS: Final = CelLibrary(
    {
        "url": (Overload("string_to_url", (STRING,), URL, _url),),
        "isURL": (Overload("is_url_string", (STRING,), BOOL, lambda text: url_fault(text) is None),),
        "getScheme": _part("url_get_scheme", lambda value: value.url.scheme),
        "getHost": _part("url_get_host", lambda value: value.url.host),
        "getHostname": _part("url_get_hostname", lambda value: value.url.hostname),
        "getPort": _part("url_get_port", lambda value: value.url.port),
        "getEscapedPath": _part("url_get_escaped_path", lambda value: value.url.path),
        "getQuery": (member("url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query),),
    }
)
