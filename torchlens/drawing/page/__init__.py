"""The interactive page: one HTML file with the data of a trace, and the script that draws it.

The script and its style sheet lie built in ``bundle/``; their source is the folder ``web`` of the
repository.
"""

from torchlens.drawing.page.document import page as page

__all__ = ["page"]
