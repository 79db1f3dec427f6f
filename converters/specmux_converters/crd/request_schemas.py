"""What requests carry beside the object, and what they answer: DeleteOptions, Patch, Status of meta/v1.

The texts are Kubernetes 1.34's; see ``meta_schemas``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.crd.meta_schemas import PREFIX, reference
from specmux_converters.crd.type_meta import TYPE_META

_OPTIONS_VERSIONS: Final = (
    ("", "v1"),
    ("admissionregistration.k8s.io", "v1 v1alpha1 v1beta1"),
    ("apps", "v1 v1beta1 v1beta2"),
    ("authentication.k8s.io", "v1 v1alpha1 v1beta1"),
    ("authorization.k8s.io", "v1 v1beta1"),
    ("autoscaling", "v1 v2 v2beta1 v2beta2"),
    ("batch", "v1 v1beta1"),
    ("certificates.k8s.io", "v1 v1alpha1 v1beta1"),
    ("coordination.k8s.io", "v1 v1alpha2 v1beta1"),
    ("discovery.k8s.io", "v1 v1beta1"),
    ("events.k8s.io", "v1 v1beta1"),
    ("extensions", "v1beta1"),
    ("flowcontrol.apiserver.k8s.io", "v1 v1beta1 v1beta2 v1beta3"),
    ("internal.apiserver.k8s.io", "v1alpha1"),
    ("networking.k8s.io", "v1 v1beta1"),
    ("node.k8s.io", "v1 v1alpha1 v1beta1"),
    ("policy", "v1 v1beta1"),
    ("rbac.authorization.k8s.io", "v1 v1alpha1 v1beta1"),
    ("resource.k8s.io", "v1 v1alpha3 v1beta1 v1beta2"),
    ("scheduling.k8s.io", "v1 v1alpha1 v1beta1"),
    ("storage.k8s.io", "v1 v1alpha1 v1beta1"),
    ("storagemigration.k8s.io", "v1alpha1"),
)
"""Every group-version that registers DeleteOptions in client-go's scheme, of which upstream lists them."""

_OPTIONS_VERSIONS_1_36: Final = {
    "autoscaling": "v1 v2",
    "scheduling.k8s.io": "v1 v1alpha2 v1beta1",
    "storagemigration.k8s.io": "v1beta1",
}
"""Where Kubernetes 1.36 differs."""


def _options_kinds(others: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {"group": group, "version": version, "kind": "DeleteOptions"}
        for group, versions in _OPTIONS_VERSIONS
        for version in others.get(group, versions).split()
    ]


OPTIONS_KINDS_1_36: Final = _options_kinds(_OPTIONS_VERSIONS_1_36)
"""The kinds of DeleteOptions in Kubernetes 1.36, whose built-in documents do not list those of all groups."""

REQUEST_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    PREFIX + "DeleteOptions": {
        "description": "DeleteOptions may be provided when deleting an API object.",
        "properties": {
            "apiVersion": TYPE_META["apiVersion"],
            "dryRun": {
                "description": (
                    "When present, indicates that modifications should not be persisted. An invalid or "
                    "unrecognized dryRun directive will result in an error response and no further "
                    "processing of the request. Valid values are: - All: all dry run stages will be "
                    "processed"
                ),
                "items": {"default": "", "type": "string"},
                "type": "array",
                "x-kubernetes-list-type": "atomic",
            },
            "gracePeriodSeconds": {
                "description": (
                    "The duration in seconds before the object should be deleted. Value must be "
                    "non-negative integer. The value zero indicates delete immediately. If this value is "
                    "nil, the default grace period for the specified type will be used. Defaults to a per "
                    "object value if not specified. zero means delete immediately."
                ),
                "format": "int64",
                "type": "integer",
            },
            "ignoreStoreReadErrorWithClusterBreakingPotential": {
                "description": (
                    "if set to true, it will trigger an unsafe deletion of the resource in case the normal "
                    "deletion flow fails with a corrupt object error. A resource is considered corrupt if "
                    "it can not be retrieved from the underlying storage successfully because of a) its "
                    "data can not be transformed e.g. decryption failure, or b) it fails to decode into an "
                    "object. NOTE: unsafe deletion ignores finalizer constraints, skips precondition "
                    "checks, and removes the object from the storage. WARNING: This may potentially break "
                    "the cluster if the workload associated with the resource being unsafe-deleted relies "
                    "on normal deletion flow. Use only if you REALLY know what you are doing. The default "
                    "value is false, and the user must opt in to enable it"
                ),
                "type": "boolean",
            },
            "kind": TYPE_META["kind"],
            "orphanDependents": {
                "description": (
                    "Deprecated: please use the PropagationPolicy, this field will be deprecated in 1.7. "
                    'Should the dependent objects be orphaned. If true/false, the "orphan" finalizer '
                    "will be added to/removed from the object's finalizers list. Either this field or "
                    "PropagationPolicy may be set, but not both."
                ),
                "type": "boolean",
            },
            "preconditions": {
                "allOf": [reference(PREFIX + "Preconditions")],
                "description": (
                    "Must be fulfilled before a deletion is carried out. If not possible, a 409 Conflict "
                    "status will be returned."
                ),
            },
            "propagationPolicy": {
                "description": (
                    "Whether and how garbage collection will be performed. Either this field or "
                    "OrphanDependents may be set, but not both. The default policy is decided by the "
                    "existing finalizer set in the metadata.finalizers and the resource-specific default "
                    "policy. Acceptable values are: 'Orphan' - orphan the dependents; 'Background' - allow "
                    "the garbage collector to delete the dependents in the background; 'Foreground' - a "
                    "cascading policy that deletes all dependents in the foreground."
                ),
                "type": "string",
            },
        },
        "type": "object",
        "x-kubernetes-group-version-kind": _options_kinds({}),
    },
    PREFIX + "Patch": {
        "description": (
            "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body."
        ),
        "type": "object",
    },
    PREFIX + "Preconditions": {
        "description": (
            "Preconditions must be fulfilled before an operation (update, delete, etc.) is carried out."
        ),
        "properties": {
            "resourceVersion": {
                "description": "Specifies the target ResourceVersion",
                "type": "string",
            },
            "uid": {"description": "Specifies the target UID.", "type": "string"},
        },
        "type": "object",
    },
    PREFIX + "Status": {
        "description": "Status is a return value for calls that don't return other objects.",
        "properties": {
            "apiVersion": TYPE_META["apiVersion"],
            "code": {
                "description": "Suggested HTTP return code for this status, 0 if not set.",
                "format": "int32",
                "type": "integer",
            },
            "details": {
                "allOf": [reference(PREFIX + "StatusDetails")],
                "description": (
                    "Extended data associated with the reason.  Each reason may define its own extended "
                    "details. This field is optional and the data returned is not guaranteed to conform to "
                    "any schema except that defined by the reason type."
                ),
                "x-kubernetes-list-type": "atomic",
            },
            "kind": TYPE_META["kind"],
            "message": {
                "description": "A human-readable description of the status of this operation.",
                "type": "string",
            },
            "metadata": {
                "allOf": [reference(PREFIX + "ListMeta")],
                "default": {},
                "description": (
                    "Standard list metadata. More info: "
                    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
                ),
            },
            "reason": {
                "description": (
                    'A machine-readable description of why this operation is in the "Failure" status. If '
                    "this value is empty there is no information available. A Reason clarifies an HTTP "
                    "status code but does not override it."
                ),
                "type": "string",
            },
            "status": {
                "description": (
                    'Status of the operation. One of: "Success" or "Failure". More info: '
                    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status"
                ),
                "type": "string",
            },
        },
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "Status", "version": "v1"}],
    },
    PREFIX + "StatusCause": {
        "description": (
            "StatusCause provides more information about an api.Status failure, including cases when "
            "multiple errors are encountered."
        ),
        "properties": {
            "field": {
                "description": (
                    "The field of the resource that has caused this error, as named by its JSON "
                    "serialization. May include dot and postfix notation for nested attributes. Arrays are "
                    "zero-indexed.  Fields may appear more than once in an array of causes due to fields "
                    'having multiple errors. Optional.\n\nExamples:\n  "name" - the field "name" on '
                    'the current resource\n  "items[0].name" - the field "name" on the first array '
                    'entry in "items"'
                ),
                "type": "string",
            },
            "message": {
                "description": (
                    "A human-readable description of the cause of the error.  This field may be presented "
                    "as-is to a reader."
                ),
                "type": "string",
            },
            "reason": {
                "description": (
                    "A machine-readable description of the cause of the error. If this value is empty "
                    "there is no information available."
                ),
                "type": "string",
            },
        },
        "type": "object",
    },
    PREFIX + "StatusDetails": {
        "description": (
            "StatusDetails is a set of additional properties that MAY be set by the server to provide "
            "additional information about a response. The Reason field of a Status object defines what "
            "attributes will be set. Clients must ignore fields that do not match the defined type of each "
            "attribute, and should assume that any attribute may be empty, invalid, or under defined."
        ),
        "properties": {
            "causes": {
                "description": (
                    "The Causes array includes more details associated with the StatusReason failure. Not "
                    "all StatusReasons may provide detailed causes."
                ),
                "items": {"allOf": [reference(PREFIX + "StatusCause")], "default": {}},
                "type": "array",
                "x-kubernetes-list-type": "atomic",
            },
            "group": {
                "description": "The group attribute of the resource associated with the status StatusReason.",
                "type": "string",
            },
            "kind": {
                "description": (
                    "The kind attribute of the resource associated with the status StatusReason. On some "
                    "operations may differ from the requested resource Kind. More info: "
                    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
                ),
                "type": "string",
            },
            "name": {
                "description": (
                    "The name attribute of the resource associated with the status StatusReason (when "
                    "there is a single name which can be described)."
                ),
                "type": "string",
            },
            "retryAfterSeconds": {
                "description": (
                    "If specified, the time in seconds before the operation should be retried. Some errors "
                    "may indicate the client must take an alternate action - for those errors this field "
                    "may indicate how long to wait before taking the alternate action."
                ),
                "format": "int32",
                "type": "integer",
            },
            "uid": {
                "description": (
                    "UID of the resource. (when there is a single resource which can be described). More "
                    "info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#uids"
                ),
                "type": "string",
            },
        },
        "type": "object",
    },
}
