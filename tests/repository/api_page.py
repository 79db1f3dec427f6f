"""docs/api.md, of what the packages export: python tests/repository/api_page.py >docs/api.md"""

from __future__ import annotations

import importlib

SECTIONS = {
    "specmux_cache": "The client library: `specmux_cache`",
    "specmux_tools": "Explain, search, validate, diff: `specmux_tools`",
    "specmux_converters": "The converters: `specmux_converters`",
}


def page() -> str:
    lines = [
        "# API reference",
        "",
        "Ten programs that use it: [examples/programs](../examples/programs).",
        "",
    ]
    for package, title in SECTIONS.items():
        lines += [f"## {title}", ""]
        exported = importlib.import_module(package).__all__
        for name in sorted(exported, key=lambda name: (name[0].isupper(), name)):
            lines += [f"::: {package}.{name}", ""]
    return "\n".join(lines[:-1]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
