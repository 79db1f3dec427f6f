"""A manifest that an apiserver takes: the skeleton, with values where a schema names none.

What Kubernetes' own kinds need beyond their schemas is in Go code alone (pkg/apis, validation.go), so it is a
table here: of a component, the fields that are written and their values. Custom resources say all in their
schemas, or in rules that nobody can turn round: a text is the first of some usual ones that fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.document import Document
from specmux_schemas.explanation.layers import Schema
from specmux_schemas.explanation.skeleton import ManifestValues, manifest
from specmux_schemas.resources import GroupVersionKind

_LABELS: Final = {"app": "example"}
_SELECTED: Final = {"matchLabels": _LABELS}
_POD_METADATA: Final = {"labels": _LABELS}
_CONTAINER: Final = {"name": "app", "image": "nginx"}
_POD: Final = {"containers": [_CONTAINER]}
_TEMPLATE: Final = {"metadata": _POD_METADATA, "spec": _POD}
_ONCE: Final = {"spec": {"restartPolicy": "Never", **_POD}}
_ROLE: Final = {"apiGroup": "rbac.authorization.k8s.io", "name": "view"}
_SUBJECTS: Final = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
_RULES: Final = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
_READ_PODS: Final = {"namespace": "default", "verb": "get", "resource": "pods"}
_REFERENCE: Final = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "example"}
_CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "example"}
_WEBHOOK: Final = {
    "name": "example.example.com",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "failurePolicy": "Ignore",
    "clientConfig": {"service": {"name": "example", "namespace": "default"}},
    "rules": [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    ],
}
_MATCHED: Final = {
    "resourceRules": [
        {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    ]
}
_SIGNING_REQUEST: Final = (  # CN=jane, of a key that nobody has
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHT01FSUNBUUF3RHpFTk1Bc0dBMVVFQXd3RWFtRn"
    "VaVEFxTUFVR0F5dGxjQU1oQUluaTVZa3Vhb2xXakJXSwpHaU9CRnIxNjdwVVAwR3hPdDdlVWNiV29PVWJEb0FBd0JR"
    "WURLMlZ3QTBFQS9KTUpoUTZMMklXMWp3Z3cxcFZ5ClpEUVp5OGFyK2dGamtuRitMTXJUU0N5dDBFc1VpKzltTVZhel"
    "F4dEduZlBOOGhDUTllMkZYRDcrNmx3dzdJQzUKRGc9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)
_TIME: Final = "2026-01-01T00:00:00.000000Z"
_DEVICES: Final = {
    "requests": [{"name": "device", "exactly": {"deviceClassName": "example"}, "deviceClassName": "example"}]
}
"""``exactly`` came with v1beta2; fields that a version does not have are left out."""

KINDS: Final[Mapping[tuple[str, str], Mapping[str, Any]]] = {
    ("", "Binding"): {"target": {"kind": "Node", "name": "example"}},
    ("", "ConfigMap"): {"data": {"key": "value"}},
    ("", "Endpoints"): {"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]},
    ("", "Event"): {
        "metadata": {"name": "example", "namespace": "default"},
        "involvedObject": _REFERENCE,
        "reason": "Example",
        "message": "An example",
        "type": "Normal",
    },
    ("", "LimitRange"): {"spec": {"limits": [{"type": "Container", "default": {"memory": "256Mi"}}]}},
    ("", "PersistentVolume"): {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/var/lib/example"},
        }
    },
    ("", "PersistentVolumeClaim"): {"spec": _CLAIM},
    ("", "Pod"): {"spec": _POD},
    ("", "PodTemplate"): {"template": _TEMPLATE},
    ("", "ReplicationController"): {"spec": {"selector": _LABELS, "template": _TEMPLATE}},
    ("", "ResourceQuota"): {"spec": {"hard": {"pods": "10"}}},
    ("", "Secret"): {"type": "Opaque", "stringData": {"key": "value"}},
    ("", "Service"): {"spec": {"selector": _LABELS, "ports": [{"port": 80}]}},
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): {"webhooks": [_WEBHOOK]},
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): {"webhooks": [_WEBHOOK]},
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): {
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": _MATCHED,
            "validations": [{"expression": "object.spec.replicas <= 5"}],
        }
    },
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): {
        "spec": {"policyName": "example", "validationActions": ["Warn"]}
    },
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): {
        "spec": {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": _MATCHED,
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{spec: Object.spec{replicas: 2}}"},
                }
            ],
        }
    },
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): {"spec": {"policyName": "example"}},
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}
                            },
                        }
                    },
                }
            ],
        },
    },
    ("apiregistration.k8s.io", "APIService"): {
        "metadata": {"name": "v1.example.com"},
        "spec": {
            "group": "example.com",
            "version": "v1",
            "service": {"name": "example", "namespace": "default"},
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "insecureSkipTLSVerify": True,
        },
    },
    ("apps", "DaemonSet"): {"spec": {"selector": _SELECTED, "template": _TEMPLATE}},
    ("apps", "Deployment"): {"spec": {"replicas": 2, "selector": _SELECTED, "template": _TEMPLATE}},
    ("apps", "ReplicaSet"): {"spec": {"replicas": 2, "selector": _SELECTED, "template": _TEMPLATE}},
    ("apps", "StatefulSet"): {
        "spec": {"serviceName": "example", "selector": _SELECTED, "template": _TEMPLATE}
    },
    ("apps", "ControllerRevision"): {"data": {}, "revision": 1},
    ("authentication.k8s.io", "TokenReview"): {"spec": {"token": "example"}},
    ("authorization.k8s.io", "LocalSubjectAccessReview"): {
        "metadata": {"namespace": "default"},
        "spec": {"user": "jane", "resourceAttributes": _READ_PODS},
    },
    ("authorization.k8s.io", "SelfSubjectAccessReview"): {
        "metadata": {},
        "spec": {"resourceAttributes": _READ_PODS},
    },
    ("authorization.k8s.io", "SelfSubjectRulesReview"): {"spec": {"namespace": "default"}},
    ("authorization.k8s.io", "SubjectAccessReview"): {
        "metadata": {},
        "spec": {"user": "jane", "resourceAttributes": _READ_PODS},
    },
    ("autoscaling", "HorizontalPodAutoscaler"): {
        "spec": {"scaleTargetRef": _TARGET, "minReplicas": 1, "maxReplicas": 5}
    },
    ("batch", "CronJob"): {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": _ONCE}}}},
    ("batch", "Job"): {"spec": {"template": _ONCE}},
    ("certificates.k8s.io", "CertificateSigningRequest"): {
        "spec": {
            "request": _SIGNING_REQUEST,
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        }
    },
    ("coordination.k8s.io", "Lease"): {"spec": {"holderIdentity": "example", "leaseDurationSeconds": 30}},
    ("coordination.k8s.io", "LeaseCandidate"): {
        "spec": {
            "binaryVersion": "1.0.0",
            "emulationVersion": "1.0.0",
            "leaseName": "example",
            "strategy": "OldestEmulationVersion",
        }
    },
    ("discovery.k8s.io", "EndpointSlice"): {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.1"]}],
        "ports": [{"port": 80}],
    },
    ("events.k8s.io", "Event"): {
        "metadata": {"name": "example", "namespace": "default"},
        "eventTime": _TIME,
        "reportingController": "example.com/controller",
        "reportingInstance": "controller-0",
        "action": "Example",
        "reason": "Example",
        "type": "Normal",
        "regarding": _REFERENCE,
    },
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): {
        "spec": {"priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 1000}
    },
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): {
        "spec": {
            "type": "Limited",
            "limited": {"nominalConcurrencyShares": 10, "limitResponse": {"type": "Reject"}},
        }
    },
    ("networking.k8s.io", "IPAddress"): {
        "metadata": {"name": "192.0.2.1"},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "example"}},
    },
    ("networking.k8s.io", "Ingress"): {
        "spec": {
            "rules": [
                {
                    "host": "example.com",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "example", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ]
        }
    },
    ("networking.k8s.io", "IngressClass"): {"spec": {"controller": "example.com/ingress"}},
    ("networking.k8s.io", "NetworkPolicy"): {"spec": {"podSelector": _SELECTED, "policyTypes": ["Ingress"]}},
    ("networking.k8s.io", "ServiceCIDR"): {"spec": {"cidrs": ["192.0.2.0/24"]}},
    ("node.k8s.io", "RuntimeClass"): {"handler": "example"},
    ("policy", "PodDisruptionBudget"): {"spec": {"minAvailable": 1, "selector": _SELECTED}},
    ("rbac.authorization.k8s.io", "ClusterRole"): {"rules": _RULES},
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): {
        "roleRef": {"kind": "ClusterRole", **_ROLE},
        "subjects": _SUBJECTS,
    },
    ("rbac.authorization.k8s.io", "Role"): {"rules": _RULES},
    ("rbac.authorization.k8s.io", "RoleBinding"): {
        "roleRef": {"kind": "ClusterRole", **_ROLE},
        "subjects": _SUBJECTS,
    },
    ("resource.k8s.io", "DeviceTaintRule"): {
        "spec": {"taint": {"key": "example.com/broken", "effect": "NoSchedule"}}
    },
    ("resource.k8s.io", "ResourceClaim"): {"spec": {"devices": _DEVICES}},
    ("resource.k8s.io", "ResourceClaimTemplate"): {"spec": {"spec": {"devices": _DEVICES}}},
    ("resource.k8s.io", "ResourceSlice"): {
        "spec": {
            "driver": "device.example.com",
            "nodeName": "example",
            "pool": {"name": "example", "generation": 1, "resourceSliceCount": 1},
        }
    },
    ("scheduling.k8s.io", "PriorityClass"): {"value": 1000},
    ("storagemigration.k8s.io", "StorageVersionMigration"): {
        "spec": {"resource": {"resource": "secrets", "version": "v1"}}
    },
    ("storage.k8s.io", "CSIDriver"): {"metadata": {"name": "csi.example.com"}},
    ("storage.k8s.io", "CSINode"): {"spec": {"drivers": []}},
    ("storage.k8s.io", "CSIStorageCapacity"): {"storageClassName": "example"},
    ("storage.k8s.io", "StorageClass"): {"provisioner": "csi.example.com"},
    ("storage.k8s.io", "VolumeAttachment"): {
        "spec": {
            "attacher": "csi.example.com",
            "nodeName": "example",
            "source": {"persistentVolumeName": "example"},
        }
    },
    ("storage.k8s.io", "VolumeAttributesClass"): {
        "driverName": "csi.example.com",
        "parameters": {"tier": "fast"},
    },
}
"""By group and kind, whatever the version."""

_TEXTS: Final = (
    *("example", "example.com", "https://example.com", "Example", "1h", "1", "100m", "1Gi", "v1.0.0"),
    *("192.0.2.0/24", "192.0.2.1", "/example", "example.com/example", "example/example", "10-20", "0.0.0"),
    *("example:1", "arn:aws:iam::000000000000:role/example", "00000000-0000-0000-0000-000000000000"),
)


def example(document: Document, kind: GroupVersionKind, schema: Schema) -> str:
    """YAML. ``schema`` is the kind's own."""
    return manifest(document, kind, schema, ManifestValues(KINDS.get((kind.group, kind.kind), {}), _TEXTS))
