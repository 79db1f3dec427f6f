"""Functions of the tools that the service mounts: each by name, with the process that runs it.

The process that serves clients imports none of them; a worker process imports a function when it first runs
it. ``tests/repository/test_loaded_modules.py`` compares what each process has loaded with its bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class NamedFunction(Generic[P, R]):
    """A function of another process. Calling it imports it, in the process that calls."""

    target: str
    """``module:function``"""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        module, _, name = self.target.partition(":")
        function: Any = getattr(import_module(module), name)
        result: R = function(*args, **kwargs)
        return result


READER: Final = {
    "perform": "specmux_tools.reader.state:perform",
    "align": "specmux_tools.reader.state:align",
    "follow": "specmux_tools.reader.state:follow",
    "add": "specmux_tools.reader.state:add",
    "keep": "specmux_tools.reader.state:keep",
    "explain": "specmux_tools.reader.questions:explain",
    "search": "specmux_tools.reader.questions:search_rows",
    "load pages": "specmux_tools.web_ui.document_page:load_pages",
    "home page": "specmux_tools.web_ui.pages:home",
    "search page": "specmux_tools.web_ui.pages:search_page",
    "status page": "specmux_tools.web_ui.pages:status_page",
    "validate page": "specmux_tools.web_ui.pages:validate_page",
    "error page": "specmux_tools.web_ui.pages:error_page",
    "changes page": "specmux_tools.web_ui.change_pages:changes_page",
    "document page": "specmux_tools.web_ui.document_page:document_page",
}
"""Run by the reader process."""
VALIDATION: Final = "specmux_tools.reader.validate_job:validate"
"""Run by the second reader process."""
DIFFERENCES: Final = "specmux_tools.change_log:compare_documents"
"""Run by the builder."""
CHANGES_AS_TEXT: Final = "specmux_tools.change_log:entries_as_text"
JSON_SCHEMAS: Final = "specmux_tools.json_schema_job:json_schema"
"""Run by the catalogue process, as is ``CHANGES_AS_TEXT``."""
DOCUMENT_CHECK: Final = "specmux_tools.document_checks.document:check_published"
"""Run by the checker."""
