"""Start-up time of `xegpu-opt --help`, against that of the MLIR bindings alone, which it includes."""

import sys

from support.processes import BIN, medians

RUNS = 15


def main() -> None:
    found = medians(
        {
            "xegpu-opt --help": [BIN / "xegpu-opt", "--help"],
            "xegpu-opt examples/gemm.mlir": [BIN / "xegpu-opt", "examples/gemm.mlir"],
            "xegpu-opt test/visa/dpas.mlir": [BIN / "xegpu-opt", "test/visa/dpas.mlir"],
            'python -c "import mlir.ir"': [sys.executable, "-c", "import mlir.ir"],
            'python -c "pass"': [sys.executable, "-c", "pass"],
        },
        RUNS,
    )
    for name, seconds in found.items():
        print(f"{seconds * 1000:7.1f} ms  {name}")
    ratio = found["xegpu-opt --help"] / found['python -c "import mlir.ir"']
    print(f'xegpu-opt --help against python -c "import mlir.ir": ratio {ratio:.2f}')


if __name__ == "__main__":
    main()
