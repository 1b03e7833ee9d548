"""Do the grouping of acks, or acks by batch index, narrow the window in which a Pulsar message is executed again?

``python experiments/pulsar_acks.py`` runs consumers as processes of their own on a real Pulsar, kills them, and prints
the two tables of docs/experiments/pulsar-acks.md: of messages that were acked just before, how many come again; and of
a batch of which some were acked.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import pulsar

from specwatch.pilots import runtime
from specwatch.pilots.runtime.pulsar import service

LATER = (0, 50, 90, 150, 300)
"""Milliseconds from an ack to the kill."""
TRIES = 10
BATCH = 10
ACKED = (0, 1, 5, 9, 10)
"""How many of a batch are acked before the kill."""
COMES = 1500
"""Milliseconds within which what comes again has come."""

CONSUMER = """
import os, pulsar, sys, time
url, topic, count, index, later = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "True", float(sys.argv[5])
consumer = pulsar.Client(url).subscribe(
    topic, "s", consumer_type=pulsar.ConsumerType.Shared, batch_index_ack_enabled=index,
    initial_position=pulsar.InitialPosition.Earliest,
)
got = [consumer.receive() for _ in range(int(sys.argv[6]))]
for message in got[:count]:
    consumer.acknowledge(message)
time.sleep(later)
os.kill(os.getpid(), 9)
"""


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        runtime.start("embedded", directory=Path(folder), needs=["pulsar"]) as servers,
    ):
        url = service(servers["pulsar"].url)
        client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        print("| killed after its ack | messages that were acked | of these came again |\n| --: | --: | --: |")
        for later in LATER:
            again = sum(len(comes_again(client, url, 1, 1, later=later / 1000)) for _ in range(TRIES))
            print(f"| {later} ms | {TRIES} | {again} |", flush=True)
        print("\n| acked of a batch of 10 | came again, without index acks | with |\n| --: | --: | --: |")
        for acked in ACKED:
            without, by_index = (
                comes_again(client, url, BATCH, acked, index=index, later=1.0) for index in (False, True)
            )
            print(f"| {acked} | {len(without)} | {len(by_index)} |", flush=True)
        client.close()


def comes_again(
    client: pulsar.Client, url: str, sent: int, acked: int, *, later: float, index: bool = False
) -> list[bytes]:
    """What another consumer receives after one has received all that was sent, acked some, and was killed."""
    topic = f"acks-{secrets.token_hex(6)}"
    producer = client.create_producer(topic, batching_enabled=sent > 1, batching_max_publish_delay_ms=500)
    for number in range(sent):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    arguments = [url, topic, str(acked), str(index), str(later), str(sent)]
    subprocess.run([sys.executable, "-c", CONSUMER, *arguments], stdout=subprocess.DEVNULL, check=False, timeout=60)
    consumer = client.subscribe(
        topic,
        "s",
        consumer_type=pulsar.ConsumerType.Shared,
        batch_index_ack_enabled=index,
        initial_position=pulsar.InitialPosition.Earliest,
    )
    found: list[bytes] = []
    try:
        while True:
            found.append(consumer.receive(COMES).data())
    except pulsar.Timeout:
        return found
    finally:
        consumer.close()
        producer.close()


if __name__ == "__main__":
    main()
