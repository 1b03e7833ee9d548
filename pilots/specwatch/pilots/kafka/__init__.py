"""The pilot on Kafka: a group of confluent-kafka's consumers that stores a row for each message.

``poll-overrun``: a member works longer than ``max.poll.interval.ms`` after its effect. Its client leaves the group, the
partition is given to another, which begins at the committed offset, and the late commit is refused.
``consumer-protocol``: the same in a group whose protocol is that of KIP-848. ``share-group``: a member of a share group
(KIP-932) works longer than the broker locks a record for it, and its late word is refused.
"""

from __future__ import annotations

from ..pilot import Pilot
from ..plan import MODES, Settings
from .plan import EXPERIMENTS, MODELS, binding, plan


def waiting(settings: Settings) -> int:
    """Messages that are not done with. Raises ``ServerError``."""
    from . import group, share

    return share.waiting(settings) if settings.plan.experiment == "share-group" else group.waiting(settings)


PILOT = Pilot(
    name="kafka",
    title="Kafka",
    server="kafka",
    clients=("confluent-kafka", "psycopg"),
    experiments=EXPERIMENTS,
    configs={(mode, name): f"{model}.{mode}.cfg" for mode in MODES for name, model in MODELS.items()},
    ends=frozenset({"Done", "Fail"}),
    worker=f"{__name__}.worker",
    producer=f"{__name__}.publish",
    plan=plan,
    binding=binding,
    waiting=waiting,
    # Clients go on at the address that the broker tells them; and there is no word about one message.
    lacks=frozenset({"proxy", "nack"}),
)
