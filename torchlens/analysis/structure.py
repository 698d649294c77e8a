"""Numbers for what is inside of module calls: equal numbers, equal insides.

Each call's inside is described once from numbers of the calls inside it, so that comparing two calls
means comparing two numbers, however large they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlens.trace.op import Op
    from torchlens.trace.trace import Trace


class Structures:
    """For each module call a number for its inner graph, and one for that with all sizes.

    The inner graph: the module's class, the calls and ops inside in order, and which hands data to which.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._calls = trace.recording.module_calls
        self._ops = [trace.ops[step] for step in trace.call_steps]
        self._depth = [0] * len(self._calls)
        for index, call in enumerate(self._calls):
            self._depth[index] = self._depth[call.parent] + 1 if call.parent >= 0 else 1
        self._known: dict[Any, int] = {}
        self.graph = [0] * len(self._calls)
        self.sized = [0] * len(self._calls)
        own, edges = self._own_ops(), self._edges()
        for index in reversed(range(len(self._calls))):
            self._describe(index, own.get(index, []), edges.get(index, []))

    def _own_ops(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for index, op in enumerate(self._ops):
            assert op.record is not None
            found.setdefault(op.record.call, []).append(index)
        return found

    def _edges(self) -> dict[int, list[tuple[Any, ...]]]:
        """Each edge at the innermost module call around both of its ends, by places inside that call."""
        place = {op.step: index for index, op in enumerate(self._ops)}
        found: dict[int, list[tuple[Any, ...]]] = {}
        for index, op in enumerate(self._ops):
            for edge in op.inputs:
                giver = place.get(edge.parent.step)
                if giver is None:
                    continue
                around = self._around(self._call_of(edge.parent), self._call_of(op))
                if around >= 0:
                    first = self._calls[around].first_op
                    found.setdefault(around, []).append(
                        (giver - first, index - first, edge.out_index, edge.slot)
                    )
        return found

    @staticmethod
    def _call_of(op: Op) -> int:
        assert op.record is not None
        return op.record.call

    def _around(self, one: int, other: int) -> int:
        """The innermost call around two calls."""
        while one != other:
            if one < 0 or other < 0:
                return -1
            if self._depth[one] >= self._depth[other]:
                one = self._calls[one].parent
            else:
                other = self._calls[other].parent
        return one

    def _describe(self, index: int, own: list[int], edges: list[tuple[Any, ...]]) -> None:
        """Number a call from its own ops and the numbers of the calls inside it."""
        graph: list[Any] = [self._trace.calls[index].module.class_name]
        sized: list[Any] = []
        inner = [(call._record.first_op, 0, call.index) for call in self._trace.child_calls(index)]
        for _, is_op, number in sorted(inner + [(op, 1, op) for op in own]):
            if is_op:
                op = self._ops[number]
                graph.append((op.type, len(op.inputs), len(op.params)))
                sized.append(op.shapes)
            else:
                graph.append(self.graph[number])
                sized.append(self.sized[number])
        self.graph[index] = self._number(("graph", *graph, tuple(sorted(edges))))
        self.sized[index] = self._number(("sized", self.graph[index], *sized))

    def _number(self, description: Any) -> int:
        return self._known.setdefault(description, len(self._known))
