"""Record every op a PyTorch model runs, and draw the graph honestly."""

from torchlens.drawing.spec import NodeSpec as NodeSpec
from torchlens.errors import InterventionError as InterventionError
from torchlens.errors import InvalidArgumentError as InvalidArgumentError
from torchlens.errors import LoadError as LoadError
from torchlens.errors import NotFoundError as NotFoundError
from torchlens.errors import SaveError as SaveError
from torchlens.errors import TorchLensError as TorchLensError
from torchlens.errors import TorchLensWarning as TorchLensWarning
from torchlens.interventions.actions import add as add
from torchlens.interventions.actions import clamp as clamp
from torchlens.interventions.actions import mean as mean
from torchlens.interventions.actions import noise as noise
from torchlens.interventions.actions import replace as replace
from torchlens.interventions.actions import scale as scale
from torchlens.interventions.actions import swap as swap
from torchlens.interventions.actions import zero as zero
from torchlens.interventions.diff import diff as diff
from torchlens.interventions.sites import func as func
from torchlens.interventions.sites import in_module as in_module
from torchlens.interventions.sites import label as label
from torchlens.interventions.sites import module as module
from torchlens.interventions.sites import params as params
from torchlens.interventions.sites import where as where
from torchlens.storage.load import load as load
from torchlens.trace.op import Layer as Layer
from torchlens.trace.op import Op as Op
from torchlens.trace.parts import Buffer as Buffer
from torchlens.trace.parts import Module as Module
from torchlens.trace.parts import Param as Param
from torchlens.trace.trace import Trace as Trace
from torchlens.tracing import trace as trace

__version__ = "0.1.0"
