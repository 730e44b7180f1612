"""Output of kernels: the print buffer of a launch, and its records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from xegpu_py.engines.memory import RuntimeFault
from xegpu_py.runtime.memory import DeviceMemory
from xegpu_py.visa.printing import BUFFER_BYTES, FIRST_RECORD, Record, read_records


def name_of(group: tuple[int, int, int], thread: int) -> str:
    """The name of a thread in messages."""
    x, y, z = group
    return f"workgroup ({x}, {y}, {z}), subgroup {thread}"


class Prints:
    """The buffer into which a kernel prints during one launch.

    Attributes:
        text: the output that was read so far.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._buffer = memory.allocate("printf_buffer", BUFFER_BYTES)
        memory.bytes_of(self._buffer)[:FIRST_RECORD].view(np.uint32)[:] = FIRST_RECORD, BUFFER_BYTES
        self.text = ""

    @property
    def address(self) -> bytes:
        """The buffer's address, the kernel's argument."""
        return self._buffer.address.to_bytes(8, "little")

    @contextmanager
    def reading(self, memory: DeviceMemory) -> Iterator[None]:
        """Read and empty the buffer in a memory after the kernel has ended or failed.

        Raises:
            RuntimeFault: if the kernel failed by an assertion; with the assertion's message.
        """
        try:
            yield
        except RuntimeFault as fault:
            for record in self._read(memory):
                if record.stops and name_of(record.group, record.thread) == fault.thread:
                    fault.message, fault.notes = f"'cf.assert' op does not hold: {record.text}", fault.notes[:1]
                    break
            raise
        else:
            self._read(memory)

    def _read(self, memory: DeviceMemory) -> list[Record]:
        data = memory.bytes_of(self._buffer)
        records, lost = read_records(data)
        # Zero the records: their order depends on the engine, and `engine="both"` compares all memory.
        data[FIRST_RECORD : int(data[:4].view(np.uint32)[0])] = 0
        self.text = "".join(r.text for r in records if not r.stops)
        if lost:
            print(f"{lost} bytes of output are lost: the buffer has {BUFFER_BYTES}", file=sys.stderr)
        return records
