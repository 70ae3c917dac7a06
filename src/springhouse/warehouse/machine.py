"""How busy is this machine?

Utilisations from 0 to 1, as psutil measures them.
"""

import psutil


class Machine:
    """Measures how busy the CPUs were since the last call, and how full the memory is."""

    def __init__(self) -> None:
        psutil.cpu_percent()  # The next call measures from now on.

    def cpu(self) -> float:
        """The busy part of the CPU time since the last call."""
        return float(psutil.cpu_percent()) / 100

    def memory(self) -> float:
        """The part of the memory that is not available to new processes."""
        return float(psutil.virtual_memory().percent) / 100
