"""Logs of a simulated Raft cluster whose network loses and repeats messages, told as events of RaftLike.tla.

The simulation is written from the algorithm and not from the spec. Its servers log what they do; what the network does
is logged by nobody. Of a message a log names type, source, destination and term, and of those that carry entries where
they go; votes, entries, and whether it went well are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from specwatch.checker.behaviour import Event

SERVERS = ("n1", "n2", "n3")
SHOWN = ("mtype", "mterm", "msource", "mdest", "mprevLogIndex", "mcommitIndex", "mmatchIndex")

Message = dict[str, Any]


@dataclass
class _Server:
    name: str
    term: int = 1
    role: str = "follower"
    vote: str | None = None
    log: list[tuple[int, int]] = field(default_factory=list)
    commit: int = 0
    votes: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    next: dict[str, int] = field(default_factory=dict)
    match: dict[str, int] = field(default_factory=dict)

    def last_term(self) -> int:
        return self.log[-1][0] if self.log else 0


class Cluster:
    """Three servers and a network.

    ``loss`` and ``repeat`` are the odds of a message to be lost or delivered again, ``restarts`` those of a server that
    acts to restart. Without ``durable`` it then forgets its vote.
    """

    def __init__(
        self, seed: int, loss: float = 0.05, repeat: float = 0.05, restarts: float = 0.004, durable: bool = True
    ) -> None:
        self.draw = Random(seed)
        self.restarts = restarts
        self.two_leaders: int | None = None
        """The event by which two servers were leaders of one term."""
        self.loss = loss
        self.repeat = repeat
        self.durable = durable
        self.servers = {name: _Server(name) for name in SERVERS}
        self.flying: list[Message] = []
        self.events: list[Event] = []
        self.lost = self.repeated = 0
        self.value = 0

    def run(self, size: int) -> list[Event]:
        """Goes on until so many events are logged."""
        while len(self.events) < size:
            if self.flying and self.draw.random() < 0.7:
                self.deliver()
            else:
                self.act(self.servers[self.draw.choice(SERVERS)])
        return self.events[:size]

    def log(self, server: str, action: str, **params: Any) -> None:
        self.events.append(Event(action=action, params=params, emitter=server, seq=len(self.events) + 1))

    # --- the network ----------------------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        if message in self.flying:
            return  # the same message again, while it is on its way: the network cannot tell them apart
        if self.draw.random() < self.loss:
            self.lost += 1
        else:
            self.flying.append(message)

    def deliver(self) -> None:
        message = self.flying.pop(self.draw.randrange(min(4, len(self.flying))))
        if self.draw.random() < self.repeat:
            self.repeated += 1
            self.flying.append(message)
        self.handle(self.servers[message["mdest"]], message)

    # --- servers --------------------------------------------------------------------------------------------------

    def act(self, server: _Server) -> None:
        others = [name for name in SERVERS if name != server.name]
        draw = self.draw.random()
        if self.draw.random() < self.restarts:
            self.restart(server)
        elif server.role == "leader":
            if draw < 0.15:
                self.value += 1
                server.log.append((server.term, self.value))
                self.log(server.name, "ClientRequest", i=server.name, v=self.value)
            else:
                self.append(server, self.draw.choice(others))
        elif server.role == "candidate" and set(others) - server.asked:
            self.ask(server, self.draw.choice(sorted(set(others) - server.asked)))
        elif draw < (0.12 if server.role == "candidate" else 0.03) or not any(
            one.role == "leader" for one in self.servers.values()
        ):
            self.time_out(server)

    def restart(self, server: _Server) -> None:
        server.role, server.commit, server.votes = "follower", 0, set()
        if not self.durable:
            server.vote = None
        self.log(server.name, "Restart", i=server.name)

    def time_out(self, server: _Server) -> None:
        server.role, server.vote, server.votes, server.asked = "candidate", server.name, {server.name}, set()
        server.term += 1
        self.log(server.name, "Timeout", i=server.name)

    def ask(self, server: _Server, other: str) -> None:
        server.asked.add(other)
        self.log(server.name, "RequestVote", i=server.name, j=other)
        self.send(
            {
                "mtype": "RequestVote",
                "mterm": server.term,
                "mlastLogTerm": server.last_term(),
                "mlastLogIndex": len(server.log),
                "msource": server.name,
                "mdest": other,
            }
        )

    def append(self, server: _Server, other: str) -> None:
        following = server.next[other]
        entries = server.log[following - 1 : following]
        self.log(server.name, "AppendEntries", i=server.name, j=other)
        self.send(
            {
                "mtype": "AppendEntries",
                "mterm": server.term,
                "mprevLogIndex": following - 1,
                "mprevLogTerm": server.log[following - 2][0] if following > 1 else 0,
                "mentries": entries,
                "mcommitIndex": min(server.commit, following - 1 + len(entries)),
                "msource": server.name,
                "mdest": other,
            }
        )

    def handle(self, server: _Server, message: Message) -> None:
        shown = {name: message[name] for name in SHOWN if name in message}
        self.log(server.name, f"Handle{message['mtype']}", m=shown)
        if message["mterm"] > server.term:
            server.term, server.role, server.vote = message["mterm"], "follower", None
        {
            "RequestVote": self.on_request,
            "RequestVoteReply": self.on_vote,
            "AppendEntries": self.on_entries,
            "AppendEntriesReply": self.on_reply,
        }[message["mtype"]](server, message)

    def on_request(self, server: _Server, message: Message) -> None:
        source = message["msource"]
        newer = (message["mlastLogTerm"], message["mlastLogIndex"]) >= (server.last_term(), len(server.log))
        grant = message["mterm"] == server.term and newer and server.vote in (None, source)
        if grant:
            server.vote = source
        self.reply(server, message, mvoteGranted=grant)

    def on_vote(self, server: _Server, message: Message) -> None:
        if message["mterm"] == server.term and server.role == "candidate" and message["mvoteGranted"]:
            server.votes.add(message["msource"])
            if len(server.votes) == 2:
                server.role = "leader"
                server.next = dict.fromkeys(SERVERS, len(server.log) + 1)
                server.match = dict.fromkeys(SERVERS, 0)
                self.log(server.name, "BecomeLeader", i=server.name)
                leaders = [one for one in self.servers.values() if one.role == "leader" and one.term == server.term]
                if len(leaders) > 1 and self.two_leaders is None:
                    self.two_leaders = len(self.events)

    def on_entries(self, server: _Server, message: Message) -> None:
        prev, entries = message["mprevLogIndex"], message["mentries"]
        current = message["mterm"] == server.term
        fits = prev == 0 or (prev <= len(server.log) and server.log[prev - 1][0] == message["mprevLogTerm"])
        if current:
            server.role = "follower"
        if current and fits:
            if entries and (len(server.log) <= prev or server.log[prev][0] != entries[0][0]):
                server.log[prev:] = entries
            server.commit = max(server.commit, message["mcommitIndex"])
        accepted = current and fits
        self.reply(server, message, msuccess=accepted, mmatchIndex=prev + len(entries) if accepted else 0)

    def on_reply(self, server: _Server, message: Message) -> None:
        source = message["msource"]
        if message["mterm"] != server.term or server.role != "leader":
            return
        if not message["msuccess"]:
            server.next[source] = max(server.next[source] - 1, 1)
            return
        server.next[source] = message["mmatchIndex"] + 1
        server.match[source] = message["mmatchIndex"]
        agreed = [
            index
            for index in range(server.commit + 1, len(server.log) + 1)
            if server.log[index - 1][0] == server.term and any(match >= index for match in server.match.values())
        ]
        if agreed:
            server.commit = agreed[-1]
            self.log(server.name, "AdvanceCommitIndex", i=server.name)

    def reply(self, server: _Server, message: Message, **fields: Any) -> None:
        kind = message["mtype"] + "Reply"
        self.send({"mtype": kind, "mterm": server.term, **fields, "msource": server.name, "mdest": message["msource"]})
