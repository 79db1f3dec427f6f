"""What to write into an editor's settings so that it reads a catalogue."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final
from xml.sax.saxutils import quoteattr

_FILES: Final = ("*.k8s.yaml", "manifests/**/*.yaml")
"""An example: which files are manifests only their owner knows."""


def _settings(address: str) -> dict[str, object]:
    """Of yaml-language-server, in the words of its own settings."""
    return {
        "schemas": {f"{address}/all.json": list(_FILES)},
        "kubernetesCRDStore": {"enable": True, "url": address},
    }


def _vscode(address: str) -> str:
    flat = {f"yaml.{name}": value for name, value in _settings(address).items()}
    return f"// .vscode/settings.json, with the extension redhat.vscode-yaml\n{json.dumps(flat, indent=2)}\n"


def _yaml_language_server(address: str) -> str:
    modeline = f"# yaml-language-server: $schema={address}/apps/deployment_v1.json"
    return (
        "// settings of yaml-language-server (workspace/didChangeConfiguration)\n"
        f"{json.dumps({'yaml': _settings(address)}, indent=2)}\n"
        f"// or, for one file, its first line:\n// {modeline}\n"
    )


def _neovim(address: str) -> str:
    patterns = ", ".join(f'"{each}"' for each in _FILES)
    return f"""-- init.lua, Neovim 0.11 or later, with yaml-language-server on the PATH
vim.lsp.config("yamlls", {{
  cmd = {{ "yaml-language-server", "--stdio" }},
  filetypes = {{ "yaml" }},
  settings = {{
    yaml = {{
      schemas = {{ ["{address}/all.json"] = {{ {patterns} }} }},
      kubernetesCRDStore = {{ enable = true, url = "{address}" }},
    }},
  }},
}})
vim.lsp.enable("yamlls")
"""


def _jetbrains(address: str) -> str:
    patterns = "\n".join(
        f'                <Item><option name="pattern" value="true" />'
        f'<option name="path" value={quoteattr(each)} />'
        f'<option name="mappingKind" value="Pattern" /></Item>'
        for each in _FILES
    )
    return f"""<!-- .idea/jsonSchemas.xml -->
<project version="4">
  <component name="JsonSchemaMappingsProjectConfiguration">
    <state>
      <map>
        <entry key="Kubernetes">
          <value>
            <SchemaInfo>
              <option name="name" value="Kubernetes" />
              <option name="relativePathToSchema" value={quoteattr(f"{address}/all.json")} />
              <option name="patterns">
                <list>
{patterns}
                </list>
              </option>
            </SchemaInfo>
          </value>
        </entry>
      </map>
    </state>
  </component>
</project>
"""


EDITORS: Final[Mapping[str, Callable[[str], str]]] = {
    "vscode": _vscode,
    "neovim": _neovim,
    "jetbrains": _jetbrains,
    "yaml-language-server": _yaml_language_server,
}
"""Editor -> its settings for the catalogue at an address without a slash at its end."""
