"""What each path asks for, and that what is no path of a catalogue asks for nothing."""

from __future__ import annotations

import pytest

from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.catalogue import store_catalog, text_of
from specmux_converters.json_schema.forms import OPEN, STRICT, ModelForm
from specmux_converters.json_schema.kinds import Kind
from specmux_converters.json_schema.paths import (
    BUNDLE,
    PARTIAL,
    ModelsFile,
    OneFile,
    Wanted,
    WholeFile,
    component_stem,
    documents_needed,
    file_wanted_at,
    is_of_release,
    paths_of,
)


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("apps/deployment_v1.json", OneFile(STRICT, "deployment", "v1", "apps")),
        ("core/pod_v1.json", OneFile(STRICT, "pod", "v1", "")),
        ("v1/pod_v1.json", OneFile(STRICT, "pod", "v1", "")),
        ("bundle/a.b/c_v1.json", OneFile(BUNDLE, "c", "v1", "a.b")),
        ("partial/core/pod_v1.json", OneFile(PARTIAL, "pod", "v1", "")),
        (
            "openshift/v4.11-strict/route_route.openshift.io_v1.json",
            OneFile(STRICT, "route", "v1", "route.openshift.io"),
        ),
        ("master-standalone/secret-v1.json", OneFile(OPEN, "secret", "v1", release="master")),
        (
            "v1.35.0-standalone-strict/a-b-c-v1.json",
            OneFile(STRICT, "a", "v1", label="b-c", release="v1.35.0"),
        ),
        ("models/core_v1.json", ModelsFile(ModelForm("json-schema"), "", "v1")),
        ("models/a.b_v1.openapi.json", ModelsFile(ModelForm("openapi"), "a.b", "v1")),
        ("partial-models/a_v1.json", ModelsFile(ModelForm("json-schema", is_partial=True), "a", "v1")),
        ("all.json", WholeFile("all")),
        ("master-local/_definitions.json", WholeFile("_definitions", OPEN, "master")),
        ("v1.2.3-standalone-strict/all.json", WholeFile("all", STRICT, "v1.2.3")),
        ("index.json", WholeFile("index")),
        ("catalog.json", WholeFile("catalog")),
    ],
)
def test_a_path_of_the_catalogue(path: str, file: Wanted) -> None:
    assert file_wanted_at(path) == file


@pytest.mark.parametrize(
    "path",
    [
        "",
        "x",
        "Apps/deployment_v1.json",
        "apps/../v1.json",
        "apps/deployment_v1.json\n",
        "apps/deployment_v1.yaml",
        "v1.35-standalone/pod-v1.json",
        "a/b/c_v1.json",
        "master-standalone/pod.json",
        "%2e/pod_v1.json",
    ],
)
def test_another_path(path: str) -> None:
    assert file_wanted_at(path) is None


@pytest.mark.parametrize(
    ("asked", "version", "is_held"),
    [
        (None, None, True),
        ("master", None, True),
        ("v1.35.9", "v1.35.2", True),
        ("v1.35.0", "v1.35.2-gke.1", True),
        ("v1.34.0", "v1.35.2", False),
        ("v1.35.0", None, False),
        ("v1.35.0", "v1.35+", True),
    ],
)
def test_a_release_is_any_patch_of_its_minor(asked: str | None, version: str | None, is_held: bool) -> None:
    assert is_of_release(asked, version) is is_held


def test_a_kind_takes_the_documents_that_may_have_it() -> None:
    keys = [
        GroupVersion(key)
        for key in ("api/v1", "apis/apps/v1", "apis/apps.other/v1", "apis/apps/v2", "version")
    ]
    grouped, labelled = (
        file_wanted_at("apps/deployment_v1.json"),
        file_wanted_at("master-standalone/deployment-apps-v1.json"),
    )
    assert grouped and labelled
    assert documents_needed(grouped, keys) == ("apis/apps/v1",)
    assert documents_needed(labelled, keys) == ("apis/apps.other/v1", "apis/apps/v1", "api/v1")


def test_every_path_of_a_kind_asks_for_it() -> None:
    for kind in (Kind("", "v1", "Pod", ""), Kind("a.example", "v1beta1", "Thing", "")):
        for path, form in paths_of(kind, "v1.35.0"):
            file = file_wanted_at(path)
            assert isinstance(file, OneFile)
            assert (file.form, file.name, file.version) == (form, kind.kind.lower(), kind.version)


@pytest.mark.parametrize(
    ("component", "stem"),
    [
        ("io.k8s.api.core.v1.PodSpec", "podspec-v1"),
        ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "objectmeta-meta-v1"),
        ("io.k8s.api.apps.v1.DeploymentSpec", "deploymentspec-apps-v1"),
        ("Pod", None),
        ("a.b/c.D", None),
    ],
)
def test_components_are_named_as_kubernetes_json_schema_names_them(component: str, stem: str | None) -> None:
    assert component_stem(component) == stem


def test_the_store_s_catalog_has_whole_addresses() -> None:
    store = store_catalog({}, "https://h/schemas/")
    assert [each["url"] for each in store["schemas"]] == [
        "https://h/schemas/all.json",
        "https://h/schemas/core/list_v1.json",
    ]
    assert text_of(store).endswith(b"}\n")
