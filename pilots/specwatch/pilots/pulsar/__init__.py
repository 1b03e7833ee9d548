"""The pilot on Apache Pulsar: a subscription of pulsar-client that stores a row for each message.

``ack-timeout``: a consumer works longer than its ack timeout after its effect, so that its client asks for the message
again. ``close``: it closes its consumer while its work goes on, as an application does that is told to stop; the broker
gives the message to another at once. ``key-shared``: the same under Key_Shared, which keeps a key with one consumer as
long as that is there.
"""

from __future__ import annotations

from ..pilot import Pilot
from ..plan import MODES, Settings
from .plan import EXPERIMENTS, binding, plan


def waiting(settings: Settings) -> int:
    """Messages that the broker has not seen acked. Raises ``ServerError``."""
    from . import subscription

    return subscription.waiting(settings)


PILOT = Pilot(
    name="pulsar",
    title="Apache Pulsar",
    server="pulsar",
    clients=("pulsar-client", "psycopg"),
    experiments=EXPERIMENTS,
    configs={(mode, experiment): f"Pulsar.{mode}.cfg" for mode in MODES for experiment in EXPERIMENTS},
    ends=frozenset({"Done", "Fail"}),
    worker=f"{__name__}.worker",
    producer=f"{__name__}.publish",
    plan=plan,
    binding=binding,
    waiting=waiting,
    # Clients go on at the address that the broker tells them.
    lacks=frozenset({"proxy"}),
)
