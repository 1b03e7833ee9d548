"""The keeper of a namespace: waits until the command has died, then removes what it used of servers that others run.

A process of its own below a guard, which sends it SIGTERM when the command is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from .errors import ServerError
from .external import SWEEP, Namespace, remove
from .guard import GRACE


def main() -> int:
    """Wait for SIGTERM and for the workers' end, then remove the namespace; 1 if something of it is left."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    own = Namespace(**json.loads(os.environ[SWEEP]))
    signal.sigwait([signal.SIGTERM])
    # Workers have until then to end; one that is still there would put keys back.
    time.sleep(GRACE + 0.5)
    try:
        remove(own)
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
