"""Numbers that print as people write them and count as what they are."""

from __future__ import annotations


def _scaled(value: float, units: list[tuple[float, str]]) -> str:
    size, unit = next(((s, u) for s, u in units if abs(value) >= s * 0.9995), units[-1])
    number = value / size
    text = f"{number:.3g}" if abs(number) < 999.5 else f"{number:.0f}"
    return f"{text} {unit}".strip()


class Bytes(int):
    """A size in bytes: ``Bytes(1536)`` prints ``1.5 KiB``."""

    def __str__(self) -> str:
        if abs(self) < 1024:
            return f"{int(self)} B"
        return _scaled(
            int(self), [(1024.0**4, "TiB"), (1024.0**3, "GiB"), (1024.0**2, "MiB"), (1024.0, "KiB")]
        )

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)


class Count(int):
    """A number of things: ``Count(11_689_512)`` prints ``11.7 M``."""

    def __str__(self) -> str:
        if abs(self) < 1000:
            return str(int(self))
        return _scaled(int(self), [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")])

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)


class Flops(Count):
    """Floating point operations, one multiply-add being two: prints ``3.6 GFLOP``."""

    def __str__(self) -> str:
        if abs(self) < 1000:
            return f"{int(self)} FLOP"
        return f"{Count.__str__(self)}FLOP"


class Duration(float):
    """A time in seconds: ``Duration(0.0012)`` prints ``1.2 ms``."""

    def __str__(self) -> str:
        if float(self) == 0.0:
            return "0 s"
        return _scaled(float(self), [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")])

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)
