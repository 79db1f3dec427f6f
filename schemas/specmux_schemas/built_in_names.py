"""What kube-apiserver calls its own resources beside plural and kind: short names and categories.

No document has them. They are those of Kubernetes 1.35 (``pkg/registry/*/*/storage``, and of earlier releases
``psp``); a resource that is not listed has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from specmux_schemas.resources import ResourceNames

_ALL: Final = ("all",)
_EXTENSIONS: Final = ("api-extensions",)


def _short(*short_names: str, categories: tuple[str, ...] = ()) -> ResourceNames:
    return ResourceNames("", short_names, categories)


_NO_NAMES: Final[Mapping[str, ResourceNames]] = {}

_BY_GROUP: Final[Mapping[str, Mapping[str, ResourceNames]]] = {
    "": {
        "componentstatuses": _short("cs"),
        "configmaps": _short("cm"),
        "endpoints": _short("ep"),
        "events": _short("ev"),
        "limitranges": _short("limits"),
        "namespaces": _short("ns"),
        "nodes": _short("no"),
        "persistentvolumeclaims": _short("pvc"),
        "persistentvolumes": _short("pv"),
        "pods": _short("po", categories=_ALL),
        "replicationcontrollers": _short("rc", categories=_ALL),
        "resourcequotas": _short("quota"),
        "serviceaccounts": _short("sa"),
        "services": _short("svc", categories=_ALL),
    },
    "admissionregistration.k8s.io": {
        "mutatingadmissionpolicies": _short(categories=_EXTENSIONS),
        "mutatingadmissionpolicybindings": _short(categories=_EXTENSIONS),
        "mutatingwebhookconfigurations": _short(categories=_EXTENSIONS),
        "validatingadmissionpolicies": _short(categories=_EXTENSIONS),
        "validatingadmissionpolicybindings": _short(categories=_EXTENSIONS),
        "validatingwebhookconfigurations": _short(categories=_EXTENSIONS),
    },
    "apiextensions.k8s.io": {
        "customresourcedefinitions": _short("crd", "crds", categories=_EXTENSIONS),
    },
    "apiregistration.k8s.io": {"apiservices": _short(categories=_EXTENSIONS)},
    "apps": {
        "daemonsets": _short("ds", categories=_ALL),
        "deployments": _short("deploy", categories=_ALL),
        "replicasets": _short("rs", categories=_ALL),
        "statefulsets": _short("sts", categories=_ALL),
    },
    "autoscaling": {"horizontalpodautoscalers": _short("hpa", categories=_ALL)},
    "batch": {"cronjobs": _short("cj", categories=_ALL), "jobs": _short(categories=_ALL)},
    "certificates.k8s.io": {"certificatesigningrequests": _short("csr")},
    "events.k8s.io": {"events": _short("ev")},
    "networking.k8s.io": {
        "ingresses": _short("ing"),
        "ipaddresses": _short("ip"),
        "networkpolicies": _short("netpol"),
    },
    "policy": {"poddisruptionbudgets": _short("pdb"), "podsecuritypolicies": _short("psp")},
    "scheduling.k8s.io": {"priorityclasses": _short("pc")},
    "storage.k8s.io": {"storageclasses": _short("sc"), "volumeattributesclasses": _short("vac")},
}


def built_in_names(group: str) -> Mapping[str, ResourceNames]:
    """By plural; nothing for a group that is not Kubernetes' own."""
    return _BY_GROUP.get(group, _NO_NAMES)
