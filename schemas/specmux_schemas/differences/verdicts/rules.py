"""Every kind of change there is, by id: its impacts, whether a described schema lowers them, and its words.

An id is a promise: reports, policies and fingerprints name it. Impacts follow Kubernetes' deprecation policy
(rule 1) and sig-architecture's api_changes.md ("On compatibility"), KEP-4008 for what is ratcheted and
kube-openapi's ``pkg/schemaconv/smd.go`` for what server-side apply makes of lists and maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from specmux_converters.deferred_dataclasses import dataclass
from specmux_schemas.differences.verdicts.impacts import Impact, Impacts

_LETTERS: Final = {"B": Impact.BREAKING, "W": Impact.WARNING, "-": Impact.NONE}


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """One kind of change."""

    id: str
    impacts: Impacts
    is_lowered_when_described: bool
    """A described schema is what somebody wrote down, not what an apiserver enforces: one step down."""
    says: str
    """For a reader, of the place; ``{what}`` stands for what of it."""


_TABLE: Final = """
group-version-removed     BB-   the group-version is gone
group-version-added       ---   the group-version is new
resource-removed          BB-   the resource is gone
resource-added            ---   the resource is new
scale-path-changed        BB-   the scale subresource has another {what}
stored-version-removed    --B   objects are stored as {what}, which the definition does not have any more
kind-changed              BBB   the resource is of another kind
scope-changed             BBB   the resource is not where it was: in namespaces, or in the cluster
operation-removed         ---   {what} is gone
operation-added           ---   {what} is new
subresource-removed       BB-   the subresource {what} is gone
subresource-added         ---   the subresource {what} is new
status-subresource-added  B--   writes to the object itself do not change its status any more
parameter-removed         W--   the parameter {what} is gone and will be ignored
parameter-added           ---   the parameter {what} is new
parameter-required        B--   the parameter {what} has to be sent
parameter-type-changed    B--   the parameter {what} is of another type
parameter-default-changed W--   the parameter {what} has another default
security-added            B--   requests have to be authenticated by {what}
response-header-removed   -W-   the header {what} is not listed any more
conversion-removed        WWW   no webhook converts between versions any more: fields of one alone are lost
parameter-tightened       B--   the parameter {what} takes fewer values
request-media-type-removed B--  requests in {what} are not taken any more
response-media-type-removed -B- answers in {what} are not given any more
media-type-added          ---   {what} is new
response-removed          -W-   the answer {what} is not listed any more
response-added            ---   the answer {what} is new
operation-id-changed      ---   the id of {what} is another
deprecated                ---   deprecated now
undeprecated              ---   not deprecated any more
selectable-field-removed  -B-   field selectors on {what} are refused
selectable-field-added    ---   field selectors may name {what}
field-removed             BBB   the field is gone
field-untyped             -W-   the field has no type any more, and is still kept
field-added               ---   the field is new
field-typed               W-W   the field has a type now, and other values of it were accepted
field-added-required      B-B   the field is new and required
field-became-required     B-B*  the field is required now
field-became-optional     -W-*  the field may be absent now
type-changed              BBB   another type
type-widened              -B-*  more types than before
type-narrowed             B-B*  fewer types than before
format-changed            BWB*  another format
format-widened            -W-*  a wider format
format-narrowed           B-B*  a narrower format
enum-value-removed        B-B*  the value {what} is not allowed any more
enum-value-added          -W-*  the value {what} may come
enum-added                B-B*  only listed values are allowed now
enum-removed              -W-*  values that were not listed may come
default-changed           B-B*  another default
default-added             W-W*  a default where there was none
default-removed           BW-*  no default any more
constraint-tightened      B-B*  {what} is stricter
constraint-relaxed        ---   {what} is less strict
constraint-changed        W-W*  {what} is another, and which is stricter cannot be told
nullable-removed          B-B*  null is not allowed any more
nullable-added            -W-*  null may come
list-type-changed         B-B   the list is merged in another way
list-map-keys-changed     B-B   the list's items are told apart by other keys
map-type-changed          B--   server-side apply owns it in another way, whole or by key
patch-strategy-changed    B--   patches of kubectl apply merge it in another way
unknown-fields-pruned     B-B   fields that are not listed are dropped now
unknown-fields-preserved  ---   fields that are not listed are kept now
map-closed                BBB   keys that were free are dropped now
map-opened                -W-   keys are free now, and the fields have no types of their own
embedded-resource-added   B-B   it has to be a whole object with apiVersion and kind
embedded-resource-removed ---   it need not be a whole object any more
rule-added                B-W*  a new validation rule
rule-added-for-new-fields ---   a new validation rule, which only objects with new fields can break
request-body-required     B--   a body has to be sent
transition-rule-added     B--*  a new validation rule on what an update may change
rule-changed              W-W*  another validation rule
rule-removed              ---   a validation rule is gone
field-became-immutable    B--*  the field cannot be changed any more
field-became-mutable      ---   the field can be changed now
branch-removed            B-B*  {what} has fewer branches
branch-added              -W-*  {what} has more branches
composition-changed       WWW*  {what} has other branches
union-added               W-W*  only one member of the union of {what} may be set now
union-removed             ---   the union of {what} is gone
union-member-removed      B-B*  the union does not have the member {what} any more
union-member-added        -W-*  the union has the member {what} now
union-member-changed      BWB*  another value of the discriminator selects the member {what}
union-discriminator-changed BWB* another field says which member of the union is set
"""
"""Write, read, stored; an asterisk where a described schema lowers them."""


def _rules() -> dict[str, ChangeRule]:
    found = {}
    for line in _TABLE.strip().splitlines():
        rule, letters, says = line.split(None, 2)
        write, read, stored = (_LETTERS[letter] for letter in letters[:3])
        found[rule] = ChangeRule(rule, Impacts(write, read, stored), letters.endswith("*"), says)
    return found


RULES: Final[Mapping[str, ChangeRule]] = MappingProxyType(_rules())
