"""How fast a log of a Raft cluster is replayed whose network loses and repeats messages, and how that grows.

``python benchmarks/raft.py`` prints a table in Markdown. The logs are those of tests/checker/raft_log.py: three
servers, 5 % of the messages lost and 5 % repeated, neither logged; Drop and Duplicate of RaftLike.tla are hidden. Times
are CPU seconds of the work alone; memory is the peak of a process of its own, interpreter and spec included.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.checker.raft_log import Cluster  # noqa: E402

from specwatch.checker.api import Options, judge, load_spec  # noqa: E402
from specwatch.checker.behaviour import Behaviour, Ledger, Order  # noqa: E402

SPEC = ROOT / "tests" / "checker" / "specs" / "RaftLike.tla"
SIZES = (100, 300, 900, 2_700)


def replay(size: int, order: Order) -> str:
    """One row. Under ``time`` the events are 1 ms apart, and the clocks differ by at most 1.5 ms."""
    spec = load_spec(SPEC)
    cluster = Cluster(seed=1)
    events = cluster.run(size)
    for number, event in enumerate(events):
        event.time = number * 1_000_000
    behaviour = Behaviour(events=events, order=order, skew=1_500_000)
    options = Options(hidden=("Drop", "Duplicate"))
    began = time.process_time()
    verdict = judge(spec, [behaviour], options, Ledger(read=size, mapped=size))
    seconds = time.process_time() - began
    assert verdict.verdict == "conforms", verdict.reason
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    name = "one log" if order == "total" else "three clocks"
    return (
        f"| {size:,} events, {name} | {cluster.lost} | {verdict.hidden_steps} | {seconds:.1f} | "
        f"{size / seconds:,.0f} | {peak:.0f} |"
    )


def main() -> None:
    """Each row in a process of its own, so that no peak hides another."""
    if len(sys.argv) > 1:
        order: Order = "time" if sys.argv[2] == "time" else "total"
        print(replay(int(sys.argv[1]), order))
        return
    print("| replay | lost | repeated, as found | CPU s | events/s | peak MB |\n|---|---|---|---|---|---|", flush=True)
    for order in ("total", "time"):
        for size in SIZES:
            subprocess.run([sys.executable, __file__, str(size), order], check=True)


if __name__ == "__main__":
    main()
