"""What starting the command costs, in CPU-seconds (user + system, the least of some runs).

``python benchmarks/startup.py`` prints a table. With byte code, as installers leave it, and without, as under
``PYTHONDONTWRITEBYTECODE=1`` in a fresh environment (here the standard library has none either: the worst case).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

RUNS = 5
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import click": ["-c", "import click"],
    "specwatch --help": ["-m", "specwatch.cli", "--help"],
    "specwatch --version": ["-m", "specwatch.cli", "--version"],
    "specwatch check --help": ["-m", "specwatch.cli", "check", "--help"],
}


def cpu_seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """The CPU time of one run of Python with these arguments."""
    process = subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as kept, tempfile.TemporaryDirectory() as never:
        base = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        with_code = base | {"PYTHONPYCACHEPREFIX": kept}
        # An empty prefix hides the byte code that lies beside the sources.
        without = base | {"PYTHONPYCACHEPREFIX": never, "PYTHONDONTWRITEBYTECODE": "1"}
        print(f"{'command':24}{'with byte code':>16}{'without':>12}")
        for name, arguments in COMMANDS.items():
            cpu_seconds(arguments, with_code)
            times = [min(cpu_seconds(arguments, env) for _ in range(RUNS)) for env in (with_code, without)]
            print(f"{name:24}{times[0]:16.3f}{times[1]:12.3f}")


if __name__ == "__main__":
    main()
