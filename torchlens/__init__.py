"""Record every op a PyTorch model runs, and draw the graph honestly."""

from torchlens.errors import InvalidArgumentError as InvalidArgumentError
from torchlens.errors import NotFoundError as NotFoundError
from torchlens.errors import TorchLensError as TorchLensError
from torchlens.errors import TorchLensWarning as TorchLensWarning
from torchlens.trace.op import Layer as Layer
from torchlens.trace.op import Op as Op
from torchlens.trace.parts import Buffer as Buffer
from torchlens.trace.parts import Module as Module
from torchlens.trace.parts import Param as Param
from torchlens.trace.trace import Trace as Trace
from torchlens.tracing import trace as trace

__version__ = "0.1.0"
