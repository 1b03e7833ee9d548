"""The keeper of a namespace: waits until the command has died, then removes what it used of servers that others run.

A process of its own below a guard, which sends it SIGTERM when the command is gone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import sys
import time

from .errors import ServerError
from .external import SWEEP, Namespace, keeps, remove
from .guard import GRACE


def main() -> int:
    """Wait for SIGTERM, then remove the namespace; 1 if something of it is left."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    own = Namespace(**json.loads(os.environ[SWEEP]))
    for library in filter(importlib.util.find_spec, ("redis", "psycopg", "pika", "nats", "confluent_kafka")):
        importlib.import_module(library)  # Now, since there is little time at the end.
    print(keeps(own), flush=True)
    signal.sigwait([signal.SIGTERM])
    last = time.monotonic() + GRACE + 0.5
    with contextlib.suppress(ServerError):
        remove(own)
    # Again when the workers have ended: one that was still there may have put keys back, or held a table.
    time.sleep(max(0.0, last - time.monotonic()))
    try:
        remove(own)
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
