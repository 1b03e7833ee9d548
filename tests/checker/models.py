"""Specs written again by hand, for the judge: each mirrors its .tla line by line, and uses nothing of the product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.checker.judge import Fn, Model, Step

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests" / "corpus" / "truth" / "traces"
CELERY = ROOT / "specs" / "celery"
OWN = Path(__file__).parent / "specs"


class Queue(NamedTuple):
    ready: frozenset[str]
    unacked: frozenset[str]
    copies: frozenset[Fn]
    exec: Fn
    acked: frozenset[str]
    deliveries: Fn


def vis_queue(config: str, *, claim: bool, invariants: tuple[str, ...]) -> Model:
    tasks, workers, max_deliveries = ("t1", "t2"), ("w1", "w2"), 3
    nothing: frozenset[str] = frozenset()
    zero = Fn.of(dict.fromkeys(tasks, 0))

    def steps(s: Queue) -> Iterator[Step]:
        for t in tasks:
            if t not in s.ready | s.acked and s.deliveries[t] == 0:
                yield "Publish", {"t": t}, s._replace(ready=s.ready | {t})
            if t in s.unacked:
                yield "VisTimeout", {"t": t}, s._replace(unacked=s.unacked - {t}, ready=s.ready | {t})
        for w in workers:
            for t in tasks:
                both = {"w": w, "t": t}
                if t in s.ready and s.deliveries[t] < max_deliveries and all(c["worker"] != w for c in s.copies):
                    n = s.deliveries[t] + 1
                    copy = Fn.of({"task": t, "n": n, "worker": w, "done": False})
                    yield (
                        "Pickup",
                        both,
                        s._replace(
                            ready=s.ready - {t},
                            unacked=s.unacked | {t},
                            deliveries=s.deliveries.but(t, n),
                            copies=s.copies | {copy},
                        ),
                    )
                for c in s.copies:
                    if c["worker"] != w or c["task"] != t:
                        continue
                    finished = (s.copies - {c}) | {c.but("done", True)}
                    if not c["done"] and (not claim or s.exec[t] == 0):
                        executed = s.exec.but(t, s.exec[t] + 1)
                        yield "Execute", both, s._replace(exec=executed, copies=finished)
                    if not c["done"] and claim and s.exec[t] > 0:
                        yield "Skip", both, s._replace(copies=finished)
                    if c["done"]:
                        left = s._replace(copies=s.copies - {c})
                        if t in s.unacked:
                            left = left._replace(unacked=s.unacked - {t}, acked=s.acked | {t})
                        yield "Ack", {**both, "c": c}, left

    def one_copy(s: Queue) -> bool:
        return all(c == d for c in s.copies for d in s.copies if c["task"] == d["task"])

    known: dict[str, Callable[[Queue], bool]] = {
        "NoDoubleExecution": lambda s: all(s.exec[t] <= 1 for t in tasks),
        "AckedWasExecuted": lambda s: all(s.exec[t] >= 1 for t in s.acked),
        "OneCopy": one_copy,
    }
    pair = ("w", "t")
    return Model(
        spec=str(TRACES / "VisQueue.tla"),
        config=str(TRACES / f"VisQueue.{config}.cfg"),
        variables=("ready", "unacked", "copies", "exec", "acked", "del"),
        initial=[Queue(nothing, nothing, frozenset(), zero, nothing, zero)],
        steps=steps,
        invariants={name: known[name] for name in invariants},
        parameters={
            "Publish": ("t",),
            "VisTimeout": ("t",),
            "Pickup": pair,
            "Execute": pair,
            "Skip": pair,
            "Ack": ("w", "t", "c"),
        },
    )


class Count(NamedTuple):
    n: int
    resets: int


def counter() -> Model:
    top, limit = 9, 5

    def steps(s: Count) -> Iterator[Step]:
        if s.n < top:
            yield "Tick", {}, s._replace(n=s.n + 1)
        if s.n + 3 <= top:
            yield "Leap", {}, s._replace(n=s.n + 3)
        if s.n > 0:
            yield "Reset", {}, Count(n=0, resets=s.resets + 1)
        for v in range(top + 1):
            if s.n == v:
                yield "Read", {"v": v}, s
            if s.n >= v:
                yield "ReadAtLeast", {"v": v}, s

    return Model(
        spec=str(TRACES / "Counter.tla"),
        config=str(TRACES / "Counter.c.cfg"),
        variables=Count._fields,
        initial=[Count(0, 0)],
        steps=steps,
        invariants={"Below": lambda s: s.n <= limit, "FewResets": lambda s: s.resets <= 2},
        parameters={"Tick": (), "Leap": (), "Reset": (), "Read": ("v",), "ReadAtLeast": ("v",)},
    )


class Bucket(NamedTuple):
    tokens: int
    served: int


def token_bucket(config: str, *, racy: bool) -> Model:
    cap = 3

    def steps(s: Bucket) -> Iterator[Step]:
        if s.tokens < cap:
            yield "Refill", {}, s._replace(tokens=s.tokens + 1)
            yield "RefillAll", {}, s._replace(tokens=cap)
        for k in range(1, cap + 1):
            if s.tokens >= (1 if racy else k):
                yield "Take", {"k": k}, Bucket(s.tokens - k, s.served + 1)
            if s.tokens < k:
                yield "Deny", {"k": k}, s

    return Model(
        spec=str(TRACES / "TokenBucket.tla"),
        config=str(TRACES / f"TokenBucket.{config}.cfg"),
        variables=Bucket._fields,
        initial=[Bucket(cap, 0)],
        steps=steps,
        invariants={"NonNegative": lambda s: s.tokens >= 0, "AtMostCap": lambda s: s.tokens <= cap},
        parameters={"Refill": (), "RefillAll": (), "Take": ("k",), "Deny": ("k",)},
    )


class Buffer(NamedTuple):
    buf: tuple[int, ...]
    got: Fn


def bounded_buffer(config: str, *, slack: int = 0, prefill: int = 0) -> Model:
    users, values, cap = ("x", "y"), (1, 2, 3), 2

    def steps(s: Buffer) -> Iterator[Step]:
        for v in values:
            if s.buf and s.buf[0] == v:
                yield "Peek", {"v": v}, s
        if s.buf:
            yield "Drop", {}, s._replace(buf=s.buf[1:])
        for u in users:
            if s.buf:
                yield "Get", {"u": u}, Buffer(s.buf[1:], s.got.but(u, (*s.got[u], s.buf[0])))
        for u in users:
            for v in values:
                if len(s.buf) < cap + slack:
                    yield "Put", {"u": u, "v": v}, s._replace(buf=(*s.buf, v))

    def ascending(s: Buffer) -> bool:
        return all(list(s.got[u]) == sorted(s.got[u]) for u in users)

    return Model(
        spec=str(TRACES / "BoundedBuffer.tla"),
        config=str(TRACES / f"BoundedBuffer.{config}.cfg"),
        variables=Buffer._fields,
        initial=[Buffer((1,) * prefill, Fn.of(dict.fromkeys(users, ())))],
        steps=steps,
        invariants={"WithinCap": lambda s: len(s.buf) <= cap, "Ascending": ascending},
        parameters={"Peek": ("v",), "Drop": (), "Get": ("u",), "Put": ("u", "v")},
    )


class Lease(NamedTuple):
    holder: str
    token: int
    my: Fn
    high: int
    log: tuple[int, ...]


def lease_lock(config: str, *, fencing: bool, invariants: tuple[str, ...]) -> Model:
    clients, max_token = ("a", "b"), 3

    def steps(s: Lease) -> Iterator[Step]:
        if s.holder != "none":
            yield "Expire", {}, s._replace(holder="none")
        for c in clients:
            mine, who = s.my[c], {"c": c}
            if s.holder == "none" and s.token < max_token:
                token = s.token + 1
                yield "Acquire", who, s._replace(token=token, holder=c, my=s.my.but(c, token))
            if mine > 0 and (not fencing or mine >= s.high):
                yield "Write", who, s._replace(high=max(mine, s.high), log=(*s.log, mine))
            if fencing and 0 < mine < s.high:
                yield "Reject", who, s._replace(my=s.my.but(c, 0))
            if mine > 0:
                yield "Release", who, s._replace(my=s.my.but(c, 0), holder="none" if s.holder == c else s.holder)

    def one_believer(s: Lease) -> bool:
        return len([c for c in clients if s.my[c] > 0]) <= 1

    known: dict[str, Callable[[Lease], bool]] = {
        "Monotone": lambda s: list(s.log) == sorted(s.log),
        "OneBeliever": one_believer,
    }
    return Model(
        spec=str(TRACES / "LeaseLock.tla"),
        config=str(TRACES / f"LeaseLock.{config}.cfg"),
        variables=Lease._fields,
        initial=[Lease("none", 0, Fn.of(dict.fromkeys(clients, 0)), 0, ())],
        steps=steps,
        invariants={name: known[name] for name in invariants},
        parameters={"Expire": (), "Acquire": ("c",), "Write": ("c",), "Reject": ("c",), "Release": ("c",)},
    )


class Connection(NamedTuple):
    cs: str
    ss: str
    chan: tuple[str, ...]
    sent: tuple[str, ...]
    rcvd: tuple[str, ...]


def conn(config: str, invariants: tuple[str, ...]) -> Model:
    messages = ("a", "b")

    def steps(s: Connection) -> Iterator[Step]:
        first = s.chan[0] if s.chan else None
        if s.cs == "closed":
            yield "Open", {}, s._replace(cs="syn", chan=(*s.chan, "SYN"))
        if s.cs == "syn" and s.ss == "est":
            yield "Established", {}, s._replace(cs="est")
        if s.cs == "est":
            yield "Close", {}, s._replace(cs="closed", chan=(*s.chan, "FIN"))
        if s.cs != "closed":
            yield "Reset", {}, s._replace(cs="closed")
        for m in messages:
            if s.cs == "est" and len(s.sent) < 3:
                yield "Send", {"m": m}, s._replace(chan=(*s.chan, m), sent=(*s.sent, m))
        if first == "SYN" and s.ss == "closed":
            yield "Accept", {}, s._replace(ss="est", chan=s.chan[1:])
        if first == "FIN":
            yield "CloseAck", {}, s._replace(ss="closed", chan=s.chan[1:])
        for m in messages:
            if first == m and s.ss == "est":
                yield "Recv", {"m": m}, s._replace(rcvd=(*s.rcvd, m), chan=s.chan[1:])
        if s.chan:
            yield "Lose", {}, s._replace(chan=s.chan[1:])

    known: dict[str, Callable[[Connection], bool]] = {
        "InOrder": lambda s: s.rcvd == s.sent[: len(s.rcvd)],
        "NoGhost": lambda s: not (s.ss == "est" and s.cs == "closed") or "FIN" in s.chan,
    }
    client = ("Open", "Established", "Close", "Reset", "Send")
    server = ("Accept", "CloseAck", "Recv")
    return Model(
        spec=str(TRACES / "Conn.tla"),
        config=str(TRACES / f"Conn.{config}.cfg"),
        variables=Connection._fields,
        initial=[Connection("closed", "closed", (), (), ())],
        steps=steps,
        invariants={name: known[name] for name in invariants},
        parameters={name: ("m",) if name in ("Send", "Recv") else () for name in (*client, *server, "Lose")},
        groups={"Client": client, "Server": server},
    )


class Eta(NamedTuple):
    tasks: frozenset[int]
    readySet: frozenset[int]  # noqa: N815 (as the spec names it)
    activeSet: frozenset[int]  # noqa: N815
    execCount: Fn  # noqa: N815


def celery_eta(config: str, *, idempotent: bool) -> Model:
    max_tasks = 2
    ids = range(max_tasks + 1)
    nothing: frozenset[int] = frozenset()

    def steps(s: Eta) -> Iterator[Step]:
        for i in ids:
            if len(s.tasks) < max_tasks and i not in s.tasks:
                yield "PublishTask", {"id": i}, s._replace(tasks=s.tasks | {i}, readySet=s.readySet | {i})
        for i in s.readySet:
            yield "PickupTask", {"id": i}, s._replace(readySet=s.readySet - {i}, activeSet=s.activeSet | {i})
        for i in s.activeSet:
            inactive = s._replace(activeSet=s.activeSet - {i})
            if not idempotent or s.execCount[i] == 0:
                yield "ExecuteTask", {"id": i}, s._replace(execCount=s.execCount.but(i, s.execCount[i] + 1))
            if idempotent and s.execCount[i] > 0:
                yield "AckWithoutExecute", {"id": i}, inactive
            yield "AckTask", {"id": i}, inactive
            yield "VisTimeoutExpired", {"id": i}, inactive._replace(readySet=s.readySet | {i})

    actions = ("PublishTask", "PickupTask", "ExecuteTask", "AckWithoutExecute", "AckTask", "VisTimeoutExpired")
    return Model(
        spec=str(CELERY / "CeleryETA.tla"),
        config=str(CELERY / f"CeleryETA.{config}.cfg"),
        variables=Eta._fields,
        initial=[Eta(nothing, nothing, nothing, Fn.of(dict.fromkeys(ids, 0)))],
        steps=steps,
        invariants={"InvariantNoDoubleExecution": lambda s: all(s.execCount[i] <= 1 for i in ids)},
        parameters=dict.fromkeys(actions, ("id",)),
    )


class Twins(NamedTuple):
    a: int
    b: int
    open: bool


def twins(config: str, starts: tuple[int, ...]) -> Model:
    def steps(s: Twins) -> Iterator[Step]:
        for x, action, by in (("a", "Up", 1), ("b", "Up", 1), ("a", "Down", -1), ("b", "Down", -1)):
            after = s._replace(a=s.a + by) if x == "a" else s._replace(b=s.b + by)
            if min(after.a, after.b) >= 0 and max(after.a, after.b) <= 3:
                yield action, {"x": x}, after
        yield "Swap", {}, s._replace(a=s.b, b=s.a)
        yield "Toggle", {}, s._replace(open=not s.open)
        if s.open:
            yield "Jump", {}, s._replace(a=1, b=1)
        yield "Apart", {"d": s.a - s.b}, s

    return Model(
        spec=str(OWN / "Twins.tla"),
        config=str(OWN / f"Twins.{config}.cfg"),
        variables=Twins._fields,
        initial=[Twins(a, 0, False) for a in starts],
        steps=steps,
        invariants={
            "LowA": lambda s: s.a < 2,
            "LowB": lambda s: s.b < 2,
            "Near": lambda s: abs(s.a - s.b) <= 1,
        },
        parameters={"Up": ("x",), "Down": ("x",), "Swap": (), "Toggle": (), "Jump": (), "Apart": ("d",)},
    )


class Shelf(NamedTuple):
    place: Fn
    runs: Fn


def shelf(tasks: tuple[str, ...] = ("t1", "t2")) -> Model:
    moves = {
        "Publish": ("away", "ready"),
        "Pickup": ("ready", "busy"),
        "Timeout": ("busy", "ready"),
        "Ack": ("busy", "away"),
    }

    def steps(s: Shelf) -> Iterator[Step]:
        for t in tasks:
            for action, (start, to) in moves.items():
                if s.place[t] == start:
                    yield action, {"t": t}, s._replace(place=s.place.but(t, to))
            if s.runs[t] > 0:
                yield "Undo", {"t": t}, s._replace(runs=s.runs.but(t, s.runs[t] - 1))
            for n in (1, 2):
                if s.place[t] == "busy" and s.runs[t] + n < 4:
                    yield "Execute", {"t": t, "n": n}, s._replace(runs=s.runs.but(t, s.runs[t] + n))

    return Model(
        spec=str(OWN / "Shelf.tla"),
        config=str(OWN / "Shelf.two.cfg"),
        variables=Shelf._fields,
        initial=[Shelf(Fn.of(dict.fromkeys(tasks, "away")), Fn.of(dict.fromkeys(tasks, 0)))],
        steps=steps,
        invariants={
            "Once": lambda s: all(s.runs[t] <= 1 for t in tasks),
            "Fresh": lambda s: all(s.place[t] != "ready" or s.runs[t] == 0 for t in tasks),
        },
        parameters={**dict.fromkeys([*moves, "Undo"], ("t",)), "Execute": ("t", "n")},
    )


class Post(NamedTuple):
    up: bool
    boots: int
    place: Fn
    runs: Fn


def post(tasks: tuple[str, ...] = ("t1", "t2")) -> Model:
    moves = {
        "Publish": ("away", "ready"),
        "Pickup": ("ready", "busy"),
        "Timeout": ("busy", "ready"),
        "Ack": ("busy", "over"),
    }

    def steps(s: Post) -> Iterator[Step]:
        if s.up:
            yield "Stop", {}, s._replace(up=False)
        elif s.boots < 3:
            yield "Boot", {}, s._replace(up=True, boots=s.boots + 1)
        for t in tasks:
            for action, (start, to) in moves.items():
                if s.place[t] == start and (s.up or action in ("Publish", "Timeout")):
                    yield action, {"t": t}, s._replace(place=s.place.but(t, to))
            if s.up and s.place[t] == "busy" and s.runs[t] < 3:
                yield "Execute", {"t": t}, s._replace(runs=s.runs.but(t, s.runs[t] + 1))

    return Model(
        spec=str(OWN / "Post.tla"),
        config=str(OWN / "Post.two.cfg"),
        variables=Post._fields,
        initial=[Post(True, 0, Fn.of(dict.fromkeys(tasks, "away")), Fn.of(dict.fromkeys(tasks, 0)))],
        steps=steps,
        invariants={
            "Once": lambda s: all(s.runs[t] <= 1 for t in tasks),
            "FewBoots": lambda s: s.boots <= 1,
            "Calm": lambda s: s.up or s.boots == 0 or all(s.place[t] != "busy" for t in tasks),
        },
        parameters={"Stop": (), "Boot": (), **dict.fromkeys([*moves, "Execute"], ("t",))},
    )


MODELS: dict[tuple[str, str], Model] = {
    ("VisQueue", "late"): vis_queue("late", claim=False, invariants=("NoDoubleExecution", "AckedWasExecuted")),
    ("VisQueue", "claim"): vis_queue("claim", claim=True, invariants=("NoDoubleExecution", "AckedWasExecuted")),
    ("VisQueue", "onecopy"): vis_queue("onecopy", claim=False, invariants=("OneCopy", "NoDoubleExecution")),
    ("Counter", "c"): counter(),
    ("TokenBucket", "exact"): token_bucket("exact", racy=False),
    ("TokenBucket", "racy"): token_bucket("racy", racy=True),
    ("BoundedBuffer", "ok"): bounded_buffer("ok"),
    ("BoundedBuffer", "slack"): bounded_buffer("slack", slack=1),
    ("BoundedBuffer", "full"): bounded_buffer("full", prefill=3),
    ("LeaseLock", "fenced"): lease_lock("fenced", fencing=True, invariants=("Monotone",)),
    ("LeaseLock", "unfenced"): lease_lock("unfenced", fencing=False, invariants=("Monotone",)),
    ("LeaseLock", "belief"): lease_lock("belief", fencing=False, invariants=("OneBeliever", "Monotone")),
    ("Conn", "all"): conn("all", ("InOrder", "NoGhost")),
    ("Conn", "order"): conn("order", ("InOrder",)),
    ("CeleryETA", "faulty"): celery_eta("faulty", idempotent=False),
    ("CeleryETA", "idempotent"): celery_eta("idempotent", idempotent=True),
    ("Shelf", "two"): shelf(),
    ("Post", "two"): post(),
    ("Twins", "one"): twins("one", (0,)),
    ("Twins", "three"): twins("three", (0, 1, 2)),
}
"""By spec and config, named as the truth table names them."""
