"""Write the OpenAPI v3 that an apiserver would publish for definitions: build_definitions.py FILE"""

import json
import sys
from pathlib import Path

import yaml

from specmux_converters import build

with Path(sys.argv[1]).open(encoding="utf-8") as file:
    built = build(yaml.safe_load_all(file))
for problem in built.problems:
    print(problem.crd, problem.pointer, problem.reason, file=sys.stderr)
for key, document in built.documents.items():
    print(key, *document["components"]["schemas"])
    Path(f"{key.replace('/', '_')}.json").write_text(json.dumps(document), encoding="utf-8")
