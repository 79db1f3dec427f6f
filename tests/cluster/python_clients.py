"""What Python's clients of Kubernetes say of a cluster, as JSON: ``python_clients.py KUBECONFIG``.

It runs where they are installed (``test_clients.py``), with nothing of this project.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from kubernetes import client, config, dynamic
from kubernetes_asyncio import client as async_client
from kubernetes_asyncio import config as async_config
from lightkube import Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource, load_in_cluster_generic_resources
from lightkube.resources.core_v1 import ConfigMap

GROUP, VERSION = "rollouts.example.com", "v1"


def of_kubernetes(kubeconfig: str) -> dict[str, Any]:
    """The official client: discovery by its dynamic part, a custom object from its making to its end."""
    api = config.new_client_from_config(kubeconfig)
    resources = dynamic.DynamicClient(api).resources
    names = sorted(f"{each.group_version} {each.name}" for each in resources.search() if each.name)
    rollouts = resources.get(api_version=f"{GROUP}/{VERSION}", kind="Rollout")
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Rollout",
        "metadata": {"name": "py"},
        "spec": {"replicas": 1},
    }
    rollouts.create(body=body, namespace="default")
    patched = rollouts.patch(
        body={"spec": {"replicas": 2}},
        name="py",
        namespace="default",
        content_type="application/merge-patch+json",
    )
    objects = client.CustomObjectsApi(api)
    scale = objects.patch_namespaced_custom_object_scale(
        GROUP, VERSION, "default", "rollouts", "py", {"spec": {"replicas": 3}}
    )
    rollouts.delete(name="py", namespace="default")
    return {
        "resources": names,
        "patched": patched.spec.replicas,
        "scaled": scale["spec"],
        "version": client.VersionApi(api).get_code().git_version,
        "groups": sorted(group.name for group in client.ApisApi(api).get_api_versions().groups),
    }


async def of_kubernetes_asyncio(kubeconfig: str) -> dict[str, Any]:
    api = await async_config.new_client_from_config(kubeconfig)
    async with api:
        groups = await async_client.ApisApi(api).get_api_versions()
        maps = await async_client.CoreV1Api(api).list_namespaced_config_map("default")
        return {"groups": sorted(group.name for group in groups.groups), "maps": maps.kind}


def of_lightkube(kubeconfig: str) -> dict[str, Any]:
    made = Client(config=KubeConfig.from_file(kubeconfig), namespace="default", trust_env=False)
    load_in_cluster_generic_resources(made)
    rollout = create_namespaced_resource(GROUP, VERSION, "Rollout", "rollouts")
    made.apply(rollout(metadata={"name": "light"}, spec={"replicas": 4}), field_manager="light")
    found = made.get(rollout, "light")["spec"]
    made.delete(rollout, "light")
    return {"applied": found, "maps": sorted(each.metadata.name for each in made.list(ConfigMap))}


def main() -> None:
    kubeconfig = sys.argv[1]
    told = {
        "kubernetes": of_kubernetes(kubeconfig),
        "kubernetes_asyncio": asyncio.run(of_kubernetes_asyncio(kubeconfig)),
        "lightkube": of_lightkube(kubeconfig),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
