"""Profiles: the exact counts of a launch, and their report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from xegpu_py.argument_types import checked
from xegpu_py.extensions.profile.caches import reuse_of
from xegpu_py.extensions.profile.counts import SUMMED, Row, Traffic, by_line
from xegpu_py.extensions.profile.gpus import GPUS, USUAL, gpu
from xegpu_py.extensions.profile.launches import ProfiledLaunch, launched
from xegpu_py.extensions.profile.report import page
from xegpu_py.extensions.profile.time_model import predicted
from xegpu_py.plugins import MissingExtra
from xegpu_py.runtime.kernel import Kernel


class Profile(Struct, dict=True):
    """The profile of a launch.

    Attributes:
        kernel: the kernel's name.
        target: the GPU.
        grid: workgroups in x, y, z.
        threads: hardware threads of a workgroup.
        registers, pressure: registers of a thread, and the most that hold live values.
        rows: the counts of each instruction.
        traffic: what messages moved, by buffer and kind.
        hottest: the number of atomic operations on the location that has most.
        complete: whether the trace from which `reuse` is counted has all accesses.
    """

    kernel: str
    target: str
    grid: tuple[int, int, int]
    threads: int
    registers: int
    pressure: int
    rows: list[Row]
    traffic: list[Traffic]
    hottest: int
    complete: bool

    @cached_property
    def reuse(self) -> dict[str, list[int]]:
        """By buffer, how many accesses of a line came after accesses of so many other lines.

        Entry n counts the distances from 2^(n-1) to 2^n - 1, and the last entry first accesses.
        """
        launch: ProfiledLaunch | None = self.__dict__.get("launched")
        return reuse_of(launch.counts.trace, launch.counts.buffers) if launch else {}

    @property
    def lines(self) -> list[tuple[str, int, dict[str, int]]]:
        """The counts of each line of the source: its file, its number, and the sums of its instructions' counts."""
        return list(by_line(self.rows))

    def save(self, path: str | Path, views: Mapping[str, str] = {}) -> None:
        """Write the profile to a file, as JSON or as a report in HTML, by the suffix of its name.

        Args:
            views: further views of the report, in HTML by their titles: such as `portability(...).views`.

        Raises:
            ValueError: if the suffix is neither .json nor .html.
        """
        Path(path).write_text(self.text(str(path), views), encoding="utf-8")

    def text(self, name: str, views: Mapping[str, str] = {}) -> str:
        """The contents of a file of this name; see `save`."""
        if name.endswith(".json"):
            fields = structs.asdict(self) | {"reuse": self.reuse}
            return msgspec.json.format(msgspec.json.encode(fields), indent=1).decode() + "\n"
        if name.endswith(".html"):
            return self.html(views=views)
        raise ValueError(f"a profile is saved as .json or .html, but got '{Path(name).name}'")

    def html(self, on: str | None = None, views: Mapping[str, str] = {}) -> str:
        """The report, one page of HTML that needs no network.

        Args:
            on: the GPU of its model of the time; by default the usual one of the target.
            views: see `save`.

        Raises:
            MissingExtra: if Bokeh is not installed.
            ValueError: if there is no such GPU, or the profile was read from a file.
        """
        launch: ProfiledLaunch | None = self.__dict__.get("launched")
        if launch is None:
            raise ValueError("only the process that ran the kernel makes the report of its profile")
        is_modelled = self.target in USUAL or self.target in GPUS
        model = gpu(on or (self.target if is_modelled else "bmg"))
        return page(self.kernel, launch, self.rows, predicted(launch, model), model, views)

    def _repr_html_(self) -> str:
        try:
            # A frame of its own: a notebook has styles of its own.
            return f"<iframe srcdoc='{escape(self.html())}' width='100%' height='800'></iframe>"
        except (MissingExtra, ValueError):
            return self._table()

    def _table(self) -> str:
        rows = [
            f"<tr><td>{r.index}</td><td><code>{escape(r.text)}</code></td>"
            + "".join(f"<td>{getattr(r, name):,}</td>" for name in SUMMED)
            + "</tr>"
            for r in self.rows
        ]
        head = "".join(f"<th>{name}</th>" for name in ("instruction", "", *SUMMED))
        return f"<table><caption>{escape(self.kernel)}</caption><tr>{head}</tr>{''.join(rows)}</table>"


@checked
def profile(
    kernel: Kernel, *arguments: Any, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None
) -> Profile:
    """Run a kernel, and count what it does: it runs twice, on its own engine and, without effect, to be counted.

    Args:
        kernel: the kernel.
        arguments: its arguments; arrays are changed as by a call.
        grid, block: as in a call of the kernel.

    Raises:
        TypeError, ValueError, DiagnosticError: as a call of the kernel.
    """
    launch = launched(kernel, arguments, grid, block, trace_limit=1 << 20)
    kernel(*arguments, grid=grid, block=block)
    return profile_of(launch)


def profile_of(launch: ProfiledLaunch) -> Profile:
    """The profile of a launch whose workgroups were counted."""
    counts, kernel, trace = launch.counts, launch.kernel, launch.counts.trace
    allocation = kernel.executor.allocation
    profile = Profile(
        kernel.name,
        kernel.options.target,
        launch.grid,
        launch.group_size,
        allocation.registers,
        allocation.pressure,
        counts.rows(),
        counts.moved(),
        counts.hottest,
        trace.complete,
    )
    profile.__dict__["launched"] = launch
    return profile
