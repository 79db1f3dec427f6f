"""Convert Swagger 2.0 to OpenAPI v3, and list what could not be carried over: convert_swagger.py FILE"""

import json
import sys
from pathlib import Path

from specmux_converters import convert, parse

conversion = convert(parse(Path(sys.argv[1]).read_bytes()))
for key, document in conversion.documents.items():
    print(key, document["openapi"], len(json.dumps(document)), "bytes")
for loss in conversion.losses:
    print(loss.pointer, loss.reason, file=sys.stderr)
