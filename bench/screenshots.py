"""Screenshots of the dashboard for the documentation: laptop and phone, light and dark.

python -m bench.screenshots --out docs/images
"""

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from bench.showroom import Crowd, Showroom, configure
from keyhole.service.engine import Engine
from keyhole.service.store.memory import MemoryStore

ROUNDS = 1_600
WORTH = {
    "Harbour walk": 0.72,
    "Night market": 0.64,
    "Glass museum": 0.42,
    "Old mill": 0.34,
    "Ferry to the island": 0.28,
    "Sky bar": 0.22,
    "Botanic garden": 0.17,
    "Tram museum": 0.13,
    "Clock tower": 0.10,
    "Fish auction": 0.07,
    "Chess park": 0.05,
    "Old customs house": 0.03,
}
SCREENS: dict[str, dict[str, Any]] = {
    "laptop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
}
MOST_BYTES = 150_000
_COLOURS = 256
"""A page has few: a palette of them all but halves a file."""


def played() -> MemoryStore:
    """Return the log of a ranker that has learnt what a crowd likes."""
    store = MemoryStore()
    engine = Engine(store)
    items = sorted(WORTH)
    configure(engine, "attractions", items=items, k=2, simulation=True, seed=7)
    Crowd(WORTH, seed=7).play(engine, "attractions", ROUNDS)
    return store


def take(out: Path, chromium: str) -> None:
    """Take all screenshots."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    out.mkdir(parents=True, exist_ok=True)
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with Showroom(played()) as showroom, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        for screen, options in SCREENS.items():
            for scheme in ("light", "dark"):
                page = browser.new_context(color_scheme=scheme, **options).new_page()
                page.goto(f"{showroom.url}/rankers/attractions")
                page.locator("#live[data-state=live]").wait_for()
                page.locator("[data-chart=score] canvas").wait_for()
                file = out / f"dashboard-{screen}-{scheme}.png"
                page.screenshot(path=file, animations="disabled")
                Image.open(file).convert("RGB").quantize(_COLOURS).save(file, optimize=True)
                size = file.stat().st_size
                print(f"{file}  {size / 1000:.0f} kB{'  too large' * (size > MOST_BYTES)}")
        browser.close()


def main() -> int:
    """Take the screenshots that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    chromium = shutil.which("chromium")
    out = parser.parse_args().out
    if chromium is None:
        print("Screenshots need chromium, and there is none on this machine.", file=sys.stderr)
        return 1
    take(out, chromium)
    return 0


if __name__ == "__main__":
    sys.exit(main())
