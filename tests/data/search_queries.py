"""What somebody may look for in 1.35 and the custom resources of the reference data, and the row they want.

Written before there was a ranking. ``*`` is any kind: what all objects have. One row was corrected since, for
the documents do not have it: the storage of Kafka is its node pools'.
"""

from __future__ import annotations

from typing import Final

QUERIES: Final = (
    ("deployment", "Deployment"),
    ("deploy", "Deployment"),
    ("pvc", "PersistentVolumeClaim"),
    ("hpa", "HorizontalPodAutoscaler"),
    ("persistent volume claim", "PersistentVolumeClaim"),
    ("deployment replicas", "Deployment.spec.replicas"),
    ("pod restartPolicy", "Pod.spec.restartPolicy"),
    ("restart policy", "Pod.spec.restartPolicy"),
    ("imagePullPolicy", "Pod.spec.containers.imagePullPolicy"),
    ("image pull secrets", "Pod.spec.imagePullSecrets"),
    ("liveness probe", "Pod.spec.containers.livenessProbe"),
    ("topologySpreadConstraints", "Pod.spec.topologySpreadConstraints"),
    ("runAsNonRoot", "Pod.spec.securityContext.runAsNonRoot"),
    ("readOnlyRootFilesystem", "Pod.spec.containers.securityContext.readOnlyRootFilesystem"),
    ("service clusterIP", "Service.spec.clusterIP"),
    ("service type", "Service.spec.type"),
    ("ingress class name", "Ingress.spec.ingressClassName"),
    ("cronjob schedule", "CronJob.spec.schedule"),
    ("job backoffLimit", "Job.spec.backoffLimit"),
    ("ttl seconds after finished", "Job.spec.ttlSecondsAfterFinished"),
    ("storage class reclaim policy", "StorageClass.reclaimPolicy"),
    ("volume binding mode", "StorageClass.volumeBindingMode"),
    ("pdb max unavailable", "PodDisruptionBudget.spec.maxUnavailable"),
    ("rolling update max surge", "Deployment.spec.strategy.rollingUpdate.maxSurge"),
    ("configmap immutable", "ConfigMap.immutable"),
    ("secret stringData", "Secret.stringData"),
    ("networkpolicy egress ports", "NetworkPolicy.spec.egress.ports"),
    ("ephemeral container", "Pod.spec.ephemeralContainers"),
    ("node taints", "Node.spec.taints"),
    ("finalizers", "*.metadata.finalizers"),
    ("number of desired pods", "Deployment.spec.replicas"),
    ("terminate gracefully", "Pod.spec.terminationGracePeriodSeconds"),
    ("gateway listeners", "Gateway.spec.listeners"),
    ("certificate secretName", "Certificate.spec.secretName"),
    ("issuer acme server", "Issuer.spec.acme.server"),
    ("prometheus retention", "Prometheus.spec.retention"),
    ("virtualservice retries", "VirtualService.spec.http.retries"),
    ("kafka storage", "KafkaNodePool.spec.storage"),
    ("application source repoURL", "Application.spec.source.repoURL"),
    ("pipeline tasks", "Pipeline.spec.tasks"),
)
"""The words, and the kind with the path."""
