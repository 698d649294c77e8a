"""Draw the pictures that the README and the documentation show: ``python docs/make_images.py``."""

from __future__ import annotations

from pathlib import Path

import torch

from torchlens.demo.gallery import VIEWS

FOLDER = Path(__file__).parent / "images"


def main() -> None:
    """One SVG per view, from the demo's models."""
    FOLDER.mkdir(exist_ok=True)
    torch.manual_seed(0)
    for picture in VIEWS:
        picture.trace().draw(FOLDER / f"{picture.name}.svg", **picture.settings)


if __name__ == "__main__":
    main()
