"""Pictures of the page, of a running service, for whoever looks at it.

    specmux serve --directory DOCUMENTS --validation-enabled
    python tests/ui/pictures.py http://127.0.0.1:8080 build/pictures
    python tests/ui/pictures.py http://127.0.0.1:8080 docs/images --docs  # those of README and docs/web-ui.md

Widths of 390, 1280 and 1920 pixels, light and dark; needs what ``make ui`` needs.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from running.browser import chromium

PAGES = {
    "home": "",
    "kind": "kind/apis/apps/v1/Deployment",
    "field": "kind/api/v1/Pod#spec.containers.image",
    "type": "type/api/v1/io.k8s.api.core.v1.Container",
    "group-version": "group-version/apis/apps/v1",
    "compare": "compare/apis/autoscaling/v2/HorizontalPodAutoscaler?with=apis/autoscaling/v1",
    "search": "search?q=spec.template.spec.containers.image",
    "typo": "search?q=deplyoment",
    "status": "status",
    "changes": "changes",
    "log": "changes/apis/cert-manager.io/v1",
    "changed": "kind/apis/cert-manager.io/v1/CertificateRequest#changes",
    "validate": "validate",
    "missing": "kind/api/v1/Pdo",
    "unknown": "kind/api/v1/Pod#spec.containers.nosuch",
}
COLOURS = 128
WIDTHS = {390: 844, 1280: 900, 1920: 1080}
MANIFEST = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - nam: app\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", action="store_true", help="the pictures of README and docs/web-ui.md alone")
    parser.add_argument("--only", default="", help="one page")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for scheme in ("light", "dark"):
            if options.docs:
                path = "kind/apis/autoscaling/v2/HorizontalPodAutoscaler"
                picture(browser, options, path, f"page-{scheme}", scheme, (1280, 640))
                sheet(browser, options, scheme)
                continue
            for name, path in PAGES.items():
                for width, height in WIDTHS.items():
                    if options.only in ("", name):
                        picture(browser, options, path, f"{name}-{width}-{scheme}", scheme, (width, height))


def sheet(browser: Any, options: argparse.Namespace, scheme: str) -> None:
    """Home and a kind at every width on one picture."""
    shown = []
    for name in ("home", "kind"):
        for width, height in WIDTHS.items():
            context = browser.new_context(
                color_scheme=scheme, viewport={"width": width, "height": height}, device_scale_factor=0.5
            )
            page = context.new_page()
            page.goto(f"{options.address}/openapi/ui/{PAGES[name]}")
            data = base64.b64encode(page.screenshot()).decode()
            shown.append(f'<img height=450 src="data:image/png;base64,{data}">')
            context.close()
    page = browser.new_page(viewport={"width": 1720, "height": 940})
    rows = ("".join(shown[:3]), "".join(shown[3:]))
    style = "body{margin:10px;background:#888}div{display:flex;gap:10px;margin-bottom:10px}"
    page.set_content(f"<style>{style}</style>" + "".join(f"<div>{row}</div>" for row in rows))
    save(page.screenshot(), options.folder / f"page-widths-{scheme}.png")
    page.close()


def save(data: bytes, path: Path) -> None:
    """As a PNG with a palette: a third of the size, and text stays sharp."""
    from PIL import Image

    Image.open(io.BytesIO(data)).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(
        path, optimize=True
    )


def picture(
    browser: Any, options: argparse.Namespace, path: str, name: str, scheme: str, size: tuple[int, int]
) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]})
    page = context.new_page()
    page.goto(f"{options.address}/openapi/ui/{path}")
    if path == "validate" and page.locator("textarea").count():
        page.fill("textarea", MANIFEST)
        page.click("#validate button")
        page.wait_for_selector(".lines")
    page.wait_for_load_state("networkidle")
    save(page.screenshot(), options.folder / f"{name}.png")
    context.close()


if __name__ == "__main__":
    main()
