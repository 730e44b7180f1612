"""`python -m xegpu_py.extensions.hardware_check`: the checks of a GPU, or the probe of its dpas."""

import sys

from xegpu_py.extensions.hardware_check import main

if __name__ == "__main__":
    sys.exit(main())
