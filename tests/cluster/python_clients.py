"""What Python's clients of Kubernetes say of a cluster, as JSON: ``python_clients.py KUBECONFIG``.

It runs where they are installed (``test_clients.py``), with nothing of this project.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import kopf
import kr8s
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


def with_token(kubeconfig: str) -> dict[str, Any]:
    """The configuration with its token in it: kr8s and kopf do not read ``tokenFile``."""
    said: dict[str, Any] = json.loads(Path(kubeconfig).read_text())
    (user,) = (each["user"] for each in said["users"])
    user["token"] = Path(user.pop("tokenFile")).read_text()
    return said


def of_kr8s(kubeconfig: str) -> dict[str, Any]:
    api = kr8s.api(kubeconfig=with_token(kubeconfig))
    listed = api.api_resources()
    rollout = kr8s.objects.new_class("Rollout", f"{GROUP}/{VERSION}", namespaced=True, scalable=True)
    body = {"metadata": {"name": "kr8s", "namespace": "default"}, "spec": {"replicas": 5}}
    made = rollout(body, api=api)
    made.create()
    made.patch({"spec": {"replicas": 6}})
    (found,) = api.get(f"rollouts.{GROUP}", "kr8s", namespace="default")
    made.delete()
    return {
        "resources": sorted(f"{each['version']} {each['name']} {each['kind']}" for each in listed),
        "found": found.raw["spec"],
        "version": api.version()["gitVersion"],
    }


async def of_kopf(kubeconfig: str) -> dict[str, Any]:
    """An operator that sees an object come and puts down what it saw, then sees it go."""
    said = with_token(kubeconfig)
    registry, seen, stop = kopf.OperatorRegistry(), list[str](), asyncio.Event()

    def login(**_: Any) -> kopf.ConnectionInfo:
        cluster, user = said["clusters"][0]["cluster"], said["users"][0]["user"]
        return kopf.ConnectionInfo(
            server=cluster["server"], ca_path=cluster["certificate-authority"], token=user["token"]
        )

    async def come(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
        seen.append(f"come {spec['replicas']}")
        patch.status["replicas"] = spec["replicas"]

    async def written(old: Any, new: Any, **_: Any) -> None:
        seen.append(f"written {old} {new}")
        stop.set()

    kopf.on.login(registry=registry)(login)
    kopf.on.create(GROUP, VERSION, "rollouts", registry=registry)(come)
    kopf.on.field(GROUP, VERSION, "rollouts", field="status.replicas", registry=registry)(written)
    ready = asyncio.Event()
    operator = kopf.operator(
        registry=registry, standalone=True, namespaces=["default"], stop_flag=stop, ready_flag=ready
    )
    running = asyncio.create_task(operator)
    rollouts = dynamic.DynamicClient(config.new_client_from_config(kubeconfig)).resources.get(
        api_version=f"{GROUP}/{VERSION}", kind="Rollout"
    )
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Rollout",
        "metadata": {"name": "kopf"},
        "spec": {"replicas": 7},
    }
    async with asyncio.timeout(120):
        await ready.wait()
        await asyncio.to_thread(rollouts.create, body=body, namespace="default")
        await running
    await asyncio.to_thread(rollouts.delete, name="kopf", namespace="default")
    return {"seen": seen}


def main() -> None:
    kubeconfig = sys.argv[1]
    told = {
        "kubernetes": of_kubernetes(kubeconfig),
        "kubernetes_asyncio": asyncio.run(of_kubernetes_asyncio(kubeconfig)),
        "lightkube": of_lightkube(kubeconfig),
        "kr8s": of_kr8s(kubeconfig),
        "kopf": asyncio.run(of_kopf(kubeconfig)),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
