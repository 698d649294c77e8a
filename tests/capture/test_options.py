"""Options of ``tl.trace``: what they keep, when they refuse."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import calls, names, net
from torch import Tensor, nn

import torchlens as tl
from torchlens.capture.clock import DeviceClock
from torchlens.capture.recorder import Recorder
from torchlens.capture.recording import Recording
from torchlens.errors import CaptureError, InvalidArgumentError

REFUSED: dict[str, dict[str, Any]] = {
    "trace_save_invalid": {"save": 3},
    "trace_warmup_invalid": {"warmup": -1},
    "trace_repeats_invalid": {"repeats": 0},
    "trace_fake_invalid": {"fake": "yes"},
    "trace_check_finite_invalid": {"check_finite": "always"},
    "trace_audit_invalid": {"audit": 1},
    "trace_saved_for_backward_invalid": {"saved_for_backward": "all"},
    "trace_restore_state_invalid": {"restore_state": None},
    "trace_progress_invalid": {"progress": 2},
    "trace_name_invalid": {"name": 5},
    "trace_keyword_unknown": {"savee": True},
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_wrong_option_is_refused_before_anything_runs(code: str) -> None:
    ran = []
    with pytest.raises(InvalidArgumentError) as caught:
        tl.trace(lambda x: ran.append(x), torch.ones(2), **REFUSED[code])
    assert caught.value.code == code
    assert not ran


@pytest.mark.parametrize("options", [{"fake": True, "repeats": 2}, {"fake": True, "warmup": 1}])
def test_a_fake_run_is_not_timed(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        tl.trace(nn.Linear(2, 2), torch.ones(2), **options)


@pytest.mark.parametrize("model", [3, None, nn.Linear])
def test_what_cannot_be_called_is_refused(model: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        tl.trace(model, torch.ones(2))
    assert caught.value.code == "trace_model_invalid"


def test_repeats_start_from_the_same_state_and_inputs() -> None:
    seen = []

    def forward(self: nn.Module, x: Tensor) -> Tensor:
        x.add_(1)
        self.count += 1
        seen.append((x.tolist(), self.count.item(), torch.rand(1).item()))
        return x * 2

    trace = tl.trace(net(forward, count=torch.zeros(1)), torch.zeros(2), warmup=1, repeats=3)
    assert len(seen) == 4
    assert len(set(map(str, seen))) == 1
    assert [len(op.func_durations) for op in calls(trace)] == [3] * len(calls(trace))


def test_a_fake_run_touches_nothing_and_has_shapes() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trace = tl.trace(model, torch.randn(5, 4), fake=True)
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())
    assert [op.shape for op in calls(trace)][-1] == (5, 3)
    assert all(op.out is None for op in calls(trace))
    with torch.device("meta"):
        huge = nn.Linear(100_000, 100_000)
    assert calls(tl.trace(huge, torch.randn(2, 100_000), fake=True))[0].shape == (2, 100_000)


def test_a_fake_run_that_needs_a_value_says_so() -> None:
    with pytest.raises(CaptureError) as caught:
        tl.trace(lambda x: x * 2 if x.sum() > 0 else x, torch.ones(2), fake=True)
    assert caught.value.code == "fake_data_dependent"


def test_finite_states_are_noted_while_running() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        return (x.log() + 1).nan_to_num()

    trace = tl.trace(net(forward), torch.tensor([0.0, 1.0]), check_finite="capture")
    assert [op.nonfinite for op in calls(trace)] == ["-inf", "-inf", "finite"]
    assert all(op.out is None for op in calls(trace))


def test_audit_counts_what_is_hidden_from_modes() -> None:
    def forward(self: nn.Module, x: Tensor) -> Tensor:
        with torch._C.DisableTorchFunction():
            y = x.sin()
        return y * 2

    trace = tl.trace(net(forward), torch.ones(2), audit=True)
    assert trace.audit.outside == {"aten.sin.default": 1}
    assert trace.audit.unknown_sources == 1
    assert int(tl.trace(net(lambda self, x: x.sin() * 2), torch.ones(2), audit=True).audit) == 0


class Event:
    """A device event on a clock that moves by hand."""

    time = 0.0
    waited = 0

    def record(self) -> None:
        Event.time += 0.25
        self.at = Event.time

    def elapsed_time(self, end: Event) -> float:
        assert Event.waited == 1
        return end.at - self.at


def test_device_events_are_resolved_after_one_wait() -> None:
    def wait() -> None:
        Event.waited += 1

    recording = Recording(name="", class_name="")
    recorder = Recorder(recording=recording)
    clock = DeviceClock(event=Event, synchronize=wait)
    recorder.use_clock(clock.now)
    with recorder:
        torch.ones(2).sin().cos()
    recorder.finish()
    assert clock.resolve(recording.log) == [250_000] * 3
    assert Event.waited == 1


def test_generators_are_announced() -> None:
    def forward(self: nn.Module, x: Tensor) -> Any:
        yield x * 2

    with pytest.warns(tl.TorchLensWarning) as caught:
        trace = tl.trace(net(forward), torch.ones(2))
    assert caught[0].message.code == "trace_output_generator"  # type: ignore[union-attr]
    assert names(trace) == []


def test_inputs_are_named_as_the_signature_says() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor, *args: Tensor, ids: dict[str, Tensor], **rest: Any) -> Tensor:
            return x + args[1] + ids["a b"] + rest["pair"][1]

    t = torch.ones
    trace = tl.trace(Net(), (t(1), t(1), t(1)), {"ids": {"a b": t(1)}, "pair": (t(1), t(1))})
    assert [op.address for op in trace.inputs] == [
        "x",
        "args[0]",
        "args[1]",
        "ids['a b']",
        "pair[0]",
        "pair[1]",
    ]
