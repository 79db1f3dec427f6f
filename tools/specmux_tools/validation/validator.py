"""Checks objects against the kinds of one document set, each compiled once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from specmux_converters.document import Document
from specmux_converters.json_values import array, mapping, text
from specmux_converters.releases import PREVIEW, minor_release
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kinds import DocumentSet, KindSchema
from specmux_tools.validation.built_in_kind import check_typed
from specmux_tools.validation.compiled_kinds import LIST, CompiledKind, CustomKind, Kinds, TypedKind
from specmux_tools.validation.decoded_object import (
    DecodedObject,
    decode_custom,
    decode_typed,
    name_unregistered,
)
from specmux_tools.validation.decoding.body import TOO_DEEP, Body, flatten, is_list, is_too_deep
from specmux_tools.validation.decoding.decoding_state import StrictError
from specmux_tools.validation.decoding.structural_values import apply_defaults, prune
from specmux_tools.validation.decoding.type_meta import read_type_meta
from specmux_tools.validation.decoding.typed_nodes import known_fields
from specmux_tools.validation.definitions.definition_fault import DEFINITION
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.hints import hint_for
from specmux_tools.validation.messages import BLOCKED, bad_request, conflict_status
from specmux_tools.validation.metadata.names import judge_with_names
from specmux_tools.validation.metadata.object_metadata import (
    address_fault,
    conflict,
    metadata_of,
    storage_prefix,
)
from specmux_tools.validation.report import (
    Check,
    Directive,
    Severity,
    UnionAlgorithm,
    ValidationReport,
    Violation,
    bound_violations,
)
from specmux_tools.validation.requests import BodyFormat, Operation, body_format, patch_type
from specmux_tools.validation.stored_objects import StoredMatch, StoredObjects

if TYPE_CHECKING:  # imported with the first custom resource, rule or union
    from specmux_tools.validation.custom_resource import CustomResourceCheck
    from specmux_tools.validation.patching.server_side_apply import ApplyTypes
    from specmux_tools.validation.rules.compiled_rule import RuleCompiler

MOST_HINTS: Final = 20
"""Hints of one report: comparing names takes its time."""

_SEVERITIES: Final = {Directive.STRICT: Severity.ERROR, Directive.WARN: Severity.WARNING}


class Validator:
    """Validates objects by one document set. It keeps what it compiled and nothing of what it
    checked; one thread at a time."""

    def __init__(
        self,
        documents: DocumentSet,
        *,
        preserving: Iterable[GroupVersionKind] = (),
        unions: UnionAlgorithm = UnionAlgorithm.OFF,
        ratchets: bool = True,
        release: str | None = None,
        definitions: Iterable[Document] = (),
        keeps_objects: bool = False,
    ) -> None:
        """``preserving``: kinds whose definitions say ``spec.preserveUnknownFields: true``. ``ratchets``: an
        update leaves alone what it does not change, as apiservers do from 1.30 on (KEP-4008). ``release`` of
        Kubernetes, such as "1.34", says what rules can use; None is the newest. ``definitions``: those that
        the documents were built of; objects of one that an apiserver refuses are not checked.
        ``keeps_objects``: reports have the objects as they would be stored."""
        self._documents = documents
        self._unions = unions
        self._ratchets = ratchets
        self._keeps_objects = keeps_objects
        self._minor = minor_release(release, newest=PREVIEW)
        self._kinds = Kinds(documents, frozenset(preserving), definitions, minor=self._minor)
        self._apply_types: dict[tuple[int, bool], ApplyTypes] = {}

    def validate(
        self,
        body: bytes,
        media_type: str = "application/json",
        directive: Directive = Directive.STRICT,
        old: Any = None,
        *,
        kind: GroupVersionKind | None = None,
    ) -> ValidationReport:
        """The report on one object: of YAML, on the first document.

        ``old`` is the object as it is stored: then this is an update. ``kind`` is what an endpoint takes,
        where it is known; else the body's own counts. Raises UnsupportedMediaType.
        """
        return self.judge(Body.receive(body, body_format(media_type)), Operation(directive, old, kind))

    def update(
        self,
        old: dict[str, Any],
        new: bytes,
        media_type: str = "application/json",
        directive: Directive = Directive.STRICT,
    ) -> ValidationReport:
        """The report on an object that replaces ``old``, which is stored: as one that is created, but for
        what the update leaves as it is (KEP-4008), with transition rules, immutable metadata, and unions.
        Raises UnsupportedMediaType."""
        return self.validate(new, media_type, directive, old)

    def patch(
        self,
        old: dict[str, Any] | None,
        patch: bytes,
        media_type: str,
        directive: Directive = Directive.STRICT,
    ) -> ValidationReport:
        """The report on an object to which a patch is applied: as an apiserver judges the patch, then the
        update. ``old`` is what is stored; None is for what is applied anew.

        Raises UnsupportedMediaType for what is no media type of a patch, ValueError for a patch of nothing.
        """
        body = Body(patch, BodyFormat.JSON)
        return self.judge(body, Operation(directive, old, patch=patch_type(media_type)))

    def validate_all(
        self,
        body: bytes,
        media_type: str = "application/json",
        directive: Directive = Directive.STRICT,
        stored: StoredObjects | None = None,
    ) -> list[ValidationReport]:
        """The reports on an object and, of a list, on the objects in it, which may be lists: updates of
        those that are ``stored``."""
        sent = Body.receive(body, body_format(media_type))
        return [self.judge_beside(each, directive, stored) for each in flatten(sent)]

    def judge_beside(
        self, body: Body, directive: Directive, stored: StoredObjects | None
    ) -> ValidationReport:
        """The report on a body of ``flatten``: on what is around the items of a list, else on an object, an
        update if it is ``stored``."""
        if is_list(body.value):
            return self._judge_list(body, Operation(directive))
        if stored is None or not isinstance(body.value, dict):
            return self.judge(body, Operation(directive))
        match = stored.match(body.value)
        return with_refused_match(self.judge(body, Operation(directive, match.old)), match)

    def judge(self, body: Body, operation: Operation) -> ValidationReport:
        """The report on one object, or one patch. Every other way ends here."""
        if operation.patch is not None:
            from specmux_tools.validation.patching.patch_report import judge_patch

            return judge_patch(self, body.data, operation.patch, operation)
        found: GroupVersionKind | None = None
        try:
            if is_too_deep(body):
                raise Undecodable(TOO_DEEP, path=("items",))
            found, wanted = self._find_wanted(body, operation.kind)
            refusal = self._kinds.refusal(found)
            if refusal is not None:
                note = Violation(Severity.NOTE, Check.NOT_CHECKED, (), refusal)
                return _report(body, operation, found, body.locate([note]))
            if wanted is None:
                error = Undecodable(name_unregistered(found), path=("kind",))
                return replace(_fatal(error, body, operation, found), is_known=False)
            decoded = self._decode(body, found, wanted)
        except Undecodable as error:
            return _fatal(error, body, operation, found)
        return self._judge_decoded(body, operation, found, wanted, decoded)

    def _judge_list(self, body: Body, operation: Operation) -> ValidationReport:
        """The report on what is around the items: as on a ``List``, if the kind is one of lists."""
        kind = body.kind
        if (
            kind is None
            or is_too_deep(body)
            or not (kind.kind.endswith(LIST.kind) or self._is_of_lists(kind))
        ):
            return replace(self.judge(body, operation), is_list=kind is not None)
        wanted = self._kinds.find(LIST)
        assert isinstance(wanted, TypedKind)
        report = self._judge_decoded(body, operation, kind, wanted, decode_typed(body, wanted))
        around = tuple(each for each in report.violations if each.path[:1] != ("items",))
        told = report.strict_errors if len(around) == len(report.violations) else ()
        return replace(report, violations=around, strict_errors=told, is_list=True)

    def _is_of_lists(self, kind: GroupVersionKind) -> bool:
        described = self._documents.find(kind)
        fields = mapping(described.schema.get("properties")) if described is not None else {}
        metadata = mapping(fields.get("metadata"))
        parts = (metadata, *array(metadata.get("allOf")))
        return any(str(mapping(each).get("$ref")).endswith(".ListMeta") for each in parts)

    @property
    def documents(self) -> DocumentSet:
        return self._documents

    def describe(self, body: Body) -> tuple[KindSchema, CompiledKind] | None:
        """The schema of the kind that the body says; None for a kind that is not known, or refused.
        Raises Undecodable."""
        kind = body.type_meta()
        described, compiled = self._kinds.describe(kind), self._kinds.find(kind)
        if kind == LIST or self._kinds.refusal(kind) is not None or described is None or compiled is None:
            return None
        return described, compiled

    def apply_types(self, described: KindSchema, kind: CompiledKind) -> ApplyTypes:
        """The types of the kind's document, made once. Raises ConverterError."""
        from specmux_tools.validation.patching.server_side_apply import ApplyTypes

        preserves = isinstance(kind, CustomKind) and kind.preserves_unknown
        key = (id(described.document), preserves)
        if key not in self._apply_types:
            self._apply_types[key] = ApplyTypes(described.document, preserve_unknown_fields=preserves)
        return self._apply_types[key]

    def _find_wanted(
        self, body: Body, kind: GroupVersionKind | None
    ) -> tuple[GroupVersionKind, CompiledKind | None]:
        """The kind that the body says, and the one it is decoded as. Raises Undecodable."""
        wanted = self._kinds.find(kind) if kind is not None else None
        if isinstance(wanted, CustomKind) and body.fault is None:
            # Unstructured: the kind is asked for after decoding, and no version is.
            found = read_type_meta(body.value)
            found = found if found.kind else body.type_meta()
        else:
            found = body.type_meta()
            wanted = self._kinds.find(found)
        # ``kind`` has its name in lower case: a custom resource is decoded without a type, and so is not
        # found as Go finds fields.
        if isinstance(wanted, CustomKind) and not body.value.get("kind"):
            raise Undecodable(f"Object 'Kind' is missing in '{body.excerpt()}'")
        return found, wanted

    def _decode(self, body: Body, found: GroupVersionKind, wanted: CompiledKind) -> DecodedObject:
        if isinstance(wanted, TypedKind):
            return decode_typed(body, wanted)
        version = body.value.get("apiVersion", "")
        if version is None:  # unstructured/helpers.go, NestedString
            text = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
            raise Undecodable(text, path=("apiVersion",))
        # An apiVersion in another case is none to what prunes: the object is of no known group there.
        if not version or (found.group, found.kind) != (wanted.kind.group, wanted.kind.kind):
            return decode_custom(body, wanted, None)
        same = wanted if found.version == wanted.kind.version else self._kinds.find(found)
        return decode_custom(body, wanted, same.structural if isinstance(same, CustomKind) else None)

    def _judge_decoded(
        self,
        body: Body,
        operation: Operation,
        found: GroupVersionKind,
        wanted: CompiledKind,
        decoded: DecodedObject,
    ) -> ValidationReport:
        directive = operation.directive
        status, refusals = _refusals(decoded.value, operation.stored, wanted)
        if decoded.faults or (decoded.strict_errors and directive is Directive.STRICT):
            status = None  # what cannot be decoded is refused first
        violations = chain(
            decoded.faults,
            _strict(decoded.strict, directive, wanted),
            refusals,
            decoded.schema,
            self._object(operation, found, wanted, decoded) if not decoded.faults else (),
        )
        is_strict = directive is not Directive.IGNORE
        left_out = decoded.left_out + (decoded.strict_left_out if is_strict else 0)
        listed = body.locate(bound_violations(violations, left_out))  # judges the object
        return _report(
            body,
            operation,
            found,
            listed,
            fatal=decoded.faults[0].message if decoded.faults else None,
            strict_errors=tuple(decoded.strict_errors) if is_strict and not decoded.faults else (),
            is_update=operation.stored is not None,
            stored=decoded.stored,
            status=status,
            is_built_in=isinstance(wanted, TypedKind) and wanted.kind not in (LIST, DEFINITION),
        )

    def _object(
        self,
        operation: Operation,
        found: GroupVersionKind,
        wanted: CompiledKind,
        decoded: DecodedObject,
    ) -> Iterable[Violation]:
        """Violations of an object that could be decoded."""
        old = operation.stored
        if isinstance(wanted, TypedKind):
            value, unions = self._unions_of(wanted, decoded.value, old)
            if self._keeps_objects:
                decoded.stored = known_fields(value, wanted.node)
            return chain(check_typed(decoded.value, wanted, old, minor=self._minor), unions)
        described = self._kinds.find(found)
        if not isinstance(described, CustomKind):
            return ()
        from specmux_tools.validation.custom_resource import check_custom

        older = _store(old, described) if old is not None else None
        left_out = decoded.left_out

        def judge(name: str) -> list[Violation]:
            checked = check_custom(decoded.value, described, older, ratchets=self._ratchets, name=name)
            decoded.left_out = left_out + checked.left_out
            value, unions = self._unions_of(described, checked.value, old)
            decoded.stored = value if self._keeps_objects else None
            rules = self._rules(checked, described, older) if described.rules.has_rules else []
            return [*checked.violations, *unions, *rules]

        if older is not None:  # it has a name
            return judge("")
        return judge_with_names(metadata_of(decoded.value), judge, reads_name=described.reads_name)

    def _unions_of(
        self, kind: CompiledKind, value: Any, old: dict[str, Any] | None
    ) -> tuple[Mapping[str, Any], list[Violation]]:
        if self._unions is UnionAlgorithm.OFF:
            return value, []
        from specmux_tools.validation.union_checks import judge_unions

        is_custom = isinstance(kind, CustomKind)
        if isinstance(kind, CustomKind) and old is not None:
            old = apply_defaults(old, kind.structural)
        described = self._documents.find(kind.kind)
        if described is None:
            return value, []
        return judge_unions(described, value, old, self._unions, is_custom=is_custom)

    def _rules(
        self, checked: CustomResourceCheck, kind: CustomKind, old: dict[str, Any] | None
    ) -> list[Violation]:
        if checked.blocks_rules:
            return [Violation(Severity.NOTE, Check.NOT_CHECKED, (), BLOCKED)]
        from specmux_tools.validation.rules.checking import MISSING, check_rules

        older = MISSING if old is None else old
        return check_rules(checked.judged, kind.rules, self._rule_compiler, older, checked.correlation)

    @cached_property
    def _rule_compiler(self) -> RuleCompiler:
        from specmux_tools.validation.rules.compiled_rule import RuleCompiler

        return RuleCompiler(self._minor)


def with_refused_match(report: ValidationReport, match: StoredMatch) -> ValidationReport:
    """With a note where there is a stored object, or had to be one, that was not compared."""
    if not match.is_refused:
        return report
    text = f"the update was not checked: {match.unmatched}"
    note = Violation(Severity.NOTE, Check.NOT_CHECKED, (), text)
    return replace(report, violations=(*report.violations, note))


def _refusals(
    value: Any, old: dict[str, Any] | None, kind: CompiledKind
) -> tuple[dict[str, Any] | None, list[Violation]]:
    """Why an apiserver does not look at the object of an update at all."""
    if old is None:
        return None, []
    new, stored = metadata_of(value), metadata_of(old)
    fault = address_fault(new, stored)
    if fault is not None:
        return bad_request(fault.text), [Violation(Severity.ERROR, Check.METADATA, fault.path, fault.text)]
    plural = kind.resource or kind.kind.kind
    prefix = storage_prefix(kind.kind.group, plural, is_custom=isinstance(kind, CustomKind))
    fault = conflict(new, stored, prefix)
    if fault is None:
        return None, []
    status = conflict_status(plural, kind.kind.group, str(stored.get("name") or ""), fault.text)
    is_told = fault.path[-1] == "uid"  # among the errors of metadata
    return status, [] if is_told else [
        Violation(Severity.ERROR, Check.METADATA, fault.path, status["message"])
    ]


def _strict(errors: list[StrictError], directive: Directive, kind: CompiledKind) -> list[Violation]:
    severity = _SEVERITIES.get(directive)
    if severity is None:
        return []
    return [
        error.violation(
            severity,
            hint_for(kind, error.path) if error.check is Check.UNKNOWN_FIELD and index < MOST_HINTS else None,
        )
        for index, error in enumerate(errors)
    ]


def _store(old: dict[str, Any], kind: CustomKind) -> dict[str, Any]:
    """Read the stored object as an apiserver does: pruned, with defaults."""
    if not kind.preserves_unknown:
        old = prune(old, kind.structural)[0]
    found: dict[str, Any] = apply_defaults(old, kind.structural)
    return found


def _report(
    body: Body,
    operation: Operation,
    found: GroupVersionKind | None,
    violations: tuple[Violation, ...],
    **more: Any,
) -> ValidationReport:
    metadata = metadata_of(body.value)
    name = text(metadata.get("name") or metadata.get("generateName"))
    namespace = text(metadata.get("namespace"))
    return ValidationReport(found, operation.directive, violations, name=name, namespace=namespace, **more)


def _fatal(
    error: Undecodable, body: Body, operation: Operation, found: GroupVersionKind | None
) -> ValidationReport:
    violation = Violation(
        Severity.ERROR, Check.DECODING, error.path, error.text, line=error.line, column=error.column
    )
    others = [Violation(Severity.ERROR, Check.DECODING, path, text) for text, path in error.others]
    listed = body.locate(bound_violations([violation, *others]), offset=error.offset)
    return _report(body, operation, found, listed, fatal=error.text)
