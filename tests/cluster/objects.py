"""What a test's cluster holds at first, and what else is put into it. As YAML."""

from __future__ import annotations

import json
from typing import Any

AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: ["system:serviceaccount:specmux:specmux"]}
- {level: None}
"""

ROLES = """
apiVersion: v1
kind: Namespace
metadata: {name: wardle}
---
apiVersion: v1
kind: Namespace
metadata: {name: specmux}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: specmux, namespace: specmux}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: apiserver, namespace: wardle}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "wardle:system:auth-delegator"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:auth-delegator"}
subjects: [{kind: ServiceAccount, name: apiserver, namespace: wardle}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: wardle-auth-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: apiserver, namespace: wardle}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: wardle}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, watch, list]}
- {apiGroups: [admissionregistration.k8s.io], resources: ["*"], verbs: [get, watch, list]}
- apiGroups: [flowcontrol.apiserver.k8s.io]
  resources: [prioritylevelconfigurations, flowschemas]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: wardle}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: wardle}
subjects: [{kind: ServiceAccount, name: apiserver, namespace: wardle}]
"""

SPECMUX = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: specmux}
rules:
- {apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [list, watch]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}
- {nonResourceURLs: [/openapi/*, /api, /apis, /version], verbs: [get]}
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: specmux}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: specmux}
subjects: [{kind: ServiceAccount, name: specmux, namespace: specmux}]
"""
"""What docs/kubernetes.md says that is needed, and the chart grants."""

WARDLE = """
apiVersion: v1
kind: Service
metadata: {{name: api, namespace: wardle}}
spec: {{type: ExternalName, externalName: localhost, ports: [{{port: {port}, protocol: TCP}}]}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1alpha1.wardle.example.com}}
spec:
  {{group: wardle.example.com, version: v1alpha1, groupPriorityMinimum: 1000, versionPriority: 15,
    caBundle: {bundle}, service: {{name: api, namespace: wardle, port: {port}}}}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1beta1.wardle.example.com}}
spec:
  {{group: wardle.example.com, version: v1beta1, groupPriorityMinimum: 1000, versionPriority: 15,
    caBundle: {bundle}, service: {{name: api, namespace: wardle, port: {port}}}}}
"""
"""An ExternalName leads the aggregator to loopback, without a network of pods."""


METRICS_SERVER = """
apiVersion: v1
kind: Service
metadata: {{name: metrics, namespace: wardle}}
spec: {{type: ExternalName, externalName: localhost, ports: [{{port: {port}, protocol: TCP}}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: metrics}}
rules:
- {{apiGroups: [""], resources: [pods, nodes, namespaces, configmaps], verbs: [get, list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: metrics}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics}}
subjects: [{{kind: ServiceAccount, name: apiserver, namespace: wardle}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1beta1.metrics.k8s.io}}
spec:
  {{group: metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100,
    caBundle: {bundle}, service: {{name: metrics, namespace: wardle, port: {port}}}}}
"""

STREAMER = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: streamer, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: streamer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: streamer, namespace: default}]
"""
"""An account that may run commands; the refusal comes before anybody asks for the pod."""


def objects(wardle_port: int, bundle: str) -> str:
    return f"{ROLES}---{SPECMUX}---{WARDLE.format(port=wardle_port, bundle=bundle)}"


def crd(kind: str, *versions: str, group: str = "example.com", **more: Any) -> dict[str, Any]:
    """A CustomResourceDefinition with a scale; ``more``: of each of its versions."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"replicas": {"type": "integer", "description": "How many.", "example": 3}},
            },
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        },
    }
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    names = versions or ("v1",)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == names[0],
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}, "scale": scale},
                    **more,
                }
                for name in names
            ],
        },
    }


def as_list(*items: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
