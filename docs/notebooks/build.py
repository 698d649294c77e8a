"""Write and run the example notebooks.

    pip install nbformat nbclient ipykernel
    python docs/notebooks/build.py

Each notebook is a list of texts and codes here, so that what is kept is only what a run gave.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
NOTEBOOKS = {
    "first-look": [
        "# A first look at a model\n\nA trace as the last line of a cell shows its summary and its overview.",
        ">>> import torch\n"
        "import torchlens as tl\n"
        "from torchlens.demo import models\n\n"
        "torch.manual_seed(0)\n"
        "trace = tl.trace(models.build_gpt(layers=4), torch.randint(0, 50, (1, 16)))\n"
        "trace",
        "## Where are the FLOPs?\n\nA view answers one question. The picture stands in the notebook.",
        '>>> trace.draw(view="compute", fold_repeats=True)',
        "## The same as a page\n\nOpen and close boxes, search, change the view: all of it is one file, "
        "which needs no network. In a notebook it stands in a frame of its own; "
        '`trace.draw("model.html")` writes it for a browser.',
        '>>> trace.draw(file_format="html")',
    ],
    "loops": [
        "# A loop, step by step\n\nOps that run several times are passes of one layer.",
        ">>> import torch\n"
        "import torchlens as tl\n"
        "from torchlens.demo import models\n\n"
        "torch.manual_seed(0)\n"
        "trace = tl.trace(models.build_lstm_loop(), torch.randn(2, 6, 8))\n"
        "trace",
        "The sequence view puts every pass into a column.",
        '>>> trace.draw(view="sequence")',
    ],
}


def main() -> None:
    """Write all notebooks with what their cells gave."""
    for name, parts in NOTEBOOKS.items():
        cells = []
        for number, part in enumerate(parts):
            is_code = part.startswith(">>> ")
            make = nbformat.v4.new_code_cell if is_code else nbformat.v4.new_markdown_cell
            cell = make(part.removeprefix(">>> "))
            cell["id"] = f"{name}-{number}"
            cells.append(cell)
        notebook = nbformat.v4.new_notebook(cells=cells)
        NotebookClient(notebook, kernel_name="python3", timeout=300, record_timing=False).execute()
        notebook.metadata = {"language_info": {"name": "python"}}
        nbformat.write(notebook, HERE / f"{name}.ipynb")
        print(f"{name}.ipynb: {(HERE / f'{name}.ipynb').stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
