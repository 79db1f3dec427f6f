"""Names of the authorizer's library (apiserver, pkg/cel/library/authz.go).

Rules of definitions can name them and never reach them: no variable of theirs is an authorizer.
"""

from __future__ import annotations

from typing import Final

from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, member
from specmux_tools.validation.rules.cel.checking.types import BOOL, STRING, struct

_AUTHORIZER, _PATH, _GROUP, _RESOURCE, _DECISION = (
    struct(f"kubernetes.authorization.{name}")
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)

AUTHORIZATION: Final = CelLibrary(
    {
        "path": (member("authorizer_path", (_AUTHORIZER, STRING), _PATH),),
        "group": (member("authorizer_group", (_AUTHORIZER, STRING), _GROUP),),
        "serviceAccount": (member("authorizer_serviceaccount", (_AUTHORIZER, STRING, STRING), _AUTHORIZER),),
        "resource": (member("groupcheck_resource", (_GROUP, STRING), _RESOURCE),),
        "subresource": (member("resourcecheck_subresource", (_RESOURCE, STRING), _RESOURCE),),
        "namespace": (member("resourcecheck_namespace", (_RESOURCE, STRING), _RESOURCE),),
        "name": (member("resourcecheck_name", (_RESOURCE, STRING), _RESOURCE),),
        "check": (
            member("pathcheck_check", (_PATH, STRING), _DECISION),
            member("resourcecheck_check", (_RESOURCE, STRING), _DECISION),
        ),
        "errored": (member("decision_errored", (_DECISION,), BOOL),),
        "error": (member("decision_error", (_DECISION,), STRING),),
        "allowed": (member("decision_allowed", (_DECISION,), BOOL),),
        "reason": (member("decision_reason", (_DECISION,), STRING),),
        "fieldSelector": (member("authorizer_fieldselector", (_RESOURCE, STRING), _RESOURCE),),
        "labelSelector": (member("authorizer_labelselector", (_RESOURCE, STRING), _RESOURCE),),
    }
)
