----------------------------- MODULE CeleryRedis -----------------------------
(***************************************************************************)
(* Celery on Redis (or Valkey) as it is: what real runs are replayed       *)
(* against. README.md beside this file says in words what is modelled and  *)
(* what is not.                                                            *)
(*                                                                         *)
(* A message is known by its delivery tag: the tag is given when the       *)
(* message is sent and survives every redelivery (kombu, redis.py,         *)
(* restore_by_tag). Here a task's tags are 1, 2, ... in the order in which *)
(* its messages were sent. A worker that receives a message holds a COPY;  *)
(* the visibility timeout puts the message back and leaves the copies      *)
(* alone, and whatever a worker then says about a tag - ack, reject,       *)
(* restore - meets whatever the broker has under that tag, be it another   *)
(* worker's.                                                               *)
(*                                                                         *)
(* Every variable is a function over Tasks and every action touches one    *)
(* task, so that the model falls apart by task. No guard bounds a count;   *)
(* Bound, a CONSTRAINT, is for exploration alone.                          *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Tasks,         \* the task ids
  Workers,       \* the workers' names; {} where no log line names one
  Acks,          \* "late": after the body. "early": from acceptance on
  Guard,         \* "none" | "checkThenInsert" | "atomicClaim"
  MaxMessages,   \* Bound: messages of a task
  MaxCopies      \* Bound: copies of a task that workers hold at once

ASSUME Acks \in {"late", "early"}
ASSUME Guard \in {"none", "checkThenInsert", "atomicClaim"}

VARIABLES
  sent,          \* the attempt that each message of the task carries, by tag
  ready,         \* tags that wait in the queue
  unacked,       \* tags in the hash `unacked`: delivered, not settled
  acked,         \* attempts of which an ack settled a message
  restored,      \* tags that were put back once: such messages say so
  copies,        \* what workers hold: a bag (copy -> how many alike)
  results,       \* rows of the task in the database
  executions,    \* the same rows by attempt: a bag
  claims,        \* attempts that the guard's table has a claim for
  closed,        \* attempts that ended without an effect, as their worker told:
                 \* failed, rejected, revoked, expired, or sent on as the next
  published,     \* how often a caller published the id
  announced      \* the highest attempt that a Retry has told of

vars == <<sent, ready, unacked, acked, restored, copies, results, executions,
          claims, closed, published, announced>>

broker == <<sent, ready, unacked, acked, restored>>
database == <<results, executions, claims>>
account == <<closed, published, announced>>

(* held: received, its body not begun (prefetched, or waiting for its ETA) *)
(* begun: the body runs. passed, found: the guard let it go on, or told it *)
(* that the work is done. executed: its effect is durable. skipped: it     *)
(* said that there is nothing to do. resent: it has sent the next attempt  *)
(* and has not yet said so. done: the body is over, the ack is still due.  *)
Phases == {"held", "begun", "passed", "found", "executed", "skipped",
           "resent", "done"}
Unfinished == {"held", "begun", "passed", "resent"}

(* Where no log line names a worker, somebody held the copy all the same.  *)
Holders == IF Workers = {} THEN {"somebody"} ELSE Workers

Holding(t) == {c.w : c \in DOMAIN copies[t]}
Held(t) == {c.a : c \in DOMAIN copies[t]}
Waiting(t) == {sent[t][d] : d \in ready[t]}

---------------------------------------------------------------- \* bags

Add(bag, x) ==
  [y \in DOMAIN bag \union {x} |->
     IF y \in DOMAIN bag
       THEN IF y = x THEN bag[y] + 1 ELSE bag[y]
       ELSE 1]

Drop(bag, x) ==
  IF bag[x] > 1
    THEN [bag EXCEPT ![x] = @ - 1]
    ELSE [y \in DOMAIN bag \ {x} |-> bag[y]]

Size(bag) == Cardinality(UNION {{x} \X (1..bag[x]) : x \in DOMAIN bag})

Move(bag, c, phase) == Add(Drop(bag, c), [c EXCEPT !.phase = phase])

(* The body is over: the copy stays for the sake of its ack, if that is due *)
Finish(bag, c) == IF c.acked THEN Drop(bag, c) ELSE Move(bag, c, "done")

(* What c's worker says takes the tag out of the hash, if it says anything *)
Settled(t, c) == IF c.acked THEN unacked[t] ELSE unacked[t] \ {c.d}

---------------------------------------------------------------- \* a message

Init ==
  /\ sent = [t \in Tasks |-> <<>>]
  /\ ready = [t \in Tasks |-> {}]
  /\ unacked = [t \in Tasks |-> {}]
  /\ acked = [t \in Tasks |-> {}]
  /\ restored = [t \in Tasks |-> {}]
  /\ copies = [t \in Tasks |-> <<>>]
  /\ results = [t \in Tasks |-> 0]
  /\ executions = [t \in Tasks |-> <<>>]
  /\ claims = [t \in Tasks |-> {}]
  /\ closed = [t \in Tasks |-> {}]
  /\ published = [t \in Tasks |-> 0]
  /\ announced = [t \in Tasks |-> 0]

Publish(t) ==
  /\ published[t] = 0
  /\ sent' = [sent EXCEPT ![t] = Append(@, 0)]
  /\ ready' = [ready EXCEPT ![t] = @ \union {Len(sent[t]) + 1}]
  /\ published' = [published EXCEPT ![t] = 1]
  /\ UNCHANGED <<unacked, acked, restored, copies, database, closed, announced>>

(* A caller publishes an id again: that buys one more execution. *)
Republish(t) ==
  /\ published[t] > 0
  /\ sent' = [sent EXCEPT ![t] = Append(@, 0)]
  /\ ready' = [ready EXCEPT ![t] = @ \union {Len(sent[t]) + 1}]
  /\ published' = [published EXCEPT ![t] = @ + 1]
  /\ UNCHANGED <<unacked, acked, restored, copies, database, closed, announced>>

(* BRPOP, then ZADD and HSET, then task_received. r: the message's flag    *)
(* `redelivered`.                                                          *)
Pickup(t, w, a, r) ==
  \E d \in ready[t] :
    /\ sent[t][d] = a
    /\ r <=> d \in restored[t]
    /\ ready' = [ready EXCEPT ![t] = @ \ {d}]
    /\ unacked' = [unacked EXCEPT ![t] = @ \union {d}]
    /\ copies' = [copies EXCEPT ![t] =
         Add(@, [d |-> d, a |-> a, w |-> w, phase |-> "held", acked |-> FALSE])]
    /\ UNCHANGED <<sent, acked, restored, database, account>>

(* restore_visible: the sweep puts back what has been out for too long, at *)
(* the end of the queue that is popped next. Restores of one task are told *)
(* one at a time, each with a pickup after it: a sweep that restores two   *)
(* of a task's messages is two such steps, and without this a task of many *)
(* attempts would have a state for each set of them. For the like reason   *)
(* none comes in the milliseconds in which a retry is sent and not told:   *)
(* else each receipt might be of a retry that is never told.               *)
VisTimeout(t, d) ==
  /\ d \in unacked[t]
  /\ ready[t] \intersect restored[t] = {}
  /\ \A c \in DOMAIN copies[t] : c.phase # "resent"
  /\ unacked' = [unacked EXCEPT ![t] = @ \ {d}]
  /\ ready' = [ready EXCEPT ![t] = @ \union {d}]
  /\ restored' = [restored EXCEPT ![t] = @ \union {d}]
  /\ UNCHANGED <<sent, acked, copies, database, account>>

---------------------------------------------------------------- \* a body

Start(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = "held"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "begun")]
    /\ UNCHANGED <<broker, database, account>>

Known(t) == IF Guard = "atomicClaim" THEN claims[t] ELSE DOMAIN executions[t]

(* The body asks its guard. "checkThenInsert" looks for a row, and another *)
(* may look before this one's row is there. "atomicClaim" takes the claim  *)
(* if it is free: one INSERT ... ON CONFLICT DO NOTHING.                   *)
Check(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ Guard # "none"
    /\ c.w = w /\ c.a = a
    /\ c.phase = "begun"
    /\ copies' = [copies EXCEPT ![t] =
         Move(@, c, IF a \in Known(t) THEN "found" ELSE "passed")]
    /\ claims' = [claims EXCEPT ![t] =
         IF Guard = "atomicClaim" THEN @ \union {a} ELSE @]
    /\ UNCHANGED <<broker, results, executions, account>>

MayExecute == IF Guard = "none" THEN "begun" ELSE "passed"

(* The effect became durable. *)
Execute(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = MayExecute
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "executed")]
    /\ results' = [results EXCEPT ![t] = @ + 1]
    /\ executions' = [executions EXCEPT ![t] = Add(@, a)]
    /\ UNCHANGED <<broker, claims, account>>

(* The transaction failed after all, and a claim made in it goes with it:  *)
(* the body must claim again. One that only looked need not look again.    *)
Undo(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = "executed"
    /\ copies' = [copies EXCEPT ![t] =
         Move(@, c, IF Guard = "checkThenInsert" THEN "passed" ELSE "begun")]
    /\ results' = [results EXCEPT ![t] = @ - 1]
    /\ executions' = [executions EXCEPT ![t] = Drop(@, a)]
    /\ claims' = [claims EXCEPT ![t] = @ \ {a}]
    /\ UNCHANGED <<broker, account>>

Skip(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = "found"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "skipped")]
    /\ UNCHANGED <<broker, database, account>>

Done(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase \in {"executed", "skipped"}
    /\ copies' = [copies EXCEPT ![t] = Finish(@, c)]
    /\ UNCHANGED <<broker, database, account>>

(* The body raised; a worker reports that, it is no loss. *)
Fail(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase \in {"begun", "passed", "found", "executed", "skipped"}
    /\ copies' = [copies EXCEPT ![t] = Finish(@, c)]
    /\ closed' = [closed EXCEPT ![t] = @ \union {a}]
    /\ UNCHANGED <<broker, database, published, announced>>

(* The same id in a new message under a new tag, attempt + 1. *)
Retry(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase \in {"begun", "passed", "executed", "resent"}
    /\ sent' = [sent EXCEPT ![t] =
         IF c.phase = "resent" THEN @ ELSE Append(@, a + 1)]
    /\ ready' = [ready EXCEPT ![t] =
         IF c.phase = "resent" THEN @ ELSE @ \union {Len(sent[t]) + 1}]
    /\ copies' = [copies EXCEPT ![t] = Finish(@, c)]
    /\ closed' = [closed EXCEPT ![t] = @ \union {a}]
    /\ announced' = [announced EXCEPT ![t] = IF a + 1 > @ THEN a + 1 ELSE @]
    /\ UNCHANGED <<unacked, acked, restored, database, published>>

(* Task.retry sends first and says so afterwards, so that the next attempt *)
(* may be received before the retry is told. A body that has sent its next *)
(* attempt has nothing left to do but to say so. That takes milliseconds,  *)
(* so one body of a task at a time is in between.                          *)
Resend(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = MayExecute
    /\ \A x \in DOMAIN copies[t] : x.phase # "resent"
    /\ sent' = [sent EXCEPT ![t] = Append(@, a + 1)]
    /\ ready' = [ready EXCEPT ![t] = @ \union {Len(sent[t]) + 1}]
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "resent")]
    /\ UNCHANGED <<unacked, acked, restored, database, account>>

---------------------------------------------------------------- \* settling

(* HDEL of the tag, whoever's entry it is; of a tag that is not there it   *)
(* does nothing, and is logged all the same. Early: as soon as the pool    *)
(* has accepted the task, in the main process, while the body may begin.   *)
Ack(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ ~c.acked
    /\ Acks = "late" => c.phase = "done"
    /\ copies' = [copies EXCEPT ![t] =
         IF c.phase = "done" THEN Drop(@, c) ELSE Add(Drop(@, c), [c EXCEPT !.acked = TRUE])]
    /\ unacked' = [unacked EXCEPT ![t] = @ \ {c.d}]
    /\ acked' = [acked EXCEPT ![t] = IF c.d \in unacked[t] THEN @ \union {a} ELSE @]
    /\ UNCHANGED <<sent, ready, restored, database, account>>

(* Rejected with requeue: back into the queue, at once. *)
Nack(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase # "resent"
    /\ copies' = [copies EXCEPT ![t] = Drop(@, c)]
    /\ unacked' = [unacked EXCEPT ![t] = Settled(t, c)]
    /\ ready' = [ready EXCEPT ![t] = @ \union (unacked[t] \ Settled(t, c))]
    /\ restored' = [restored EXCEPT ![t] = @ \union (unacked[t] \ Settled(t, c))]
    /\ UNCHANGED <<sent, acked, database, account>>

(* Rejected without requeue: gone. *)
Reject(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase # "resent"
    /\ copies' = [copies EXCEPT ![t] = Drop(@, c)]
    /\ unacked' = [unacked EXCEPT ![t] = Settled(t, c)]
    /\ closed' = [closed EXCEPT ![t] = @ \union {a}]
    /\ UNCHANGED <<sent, ready, acked, restored, database, published, announced>>

(* Discarded before its body begins, or its body is terminated. *)
Revoke(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase \notin {"resent", "done"}
    /\ copies' = [copies EXCEPT ![t] = Drop(@, c)]
    /\ unacked' = [unacked EXCEPT ![t] = Settled(t, c)]
    /\ closed' = [closed EXCEPT ![t] = @ \union {a}]
    /\ UNCHANGED <<sent, ready, acked, restored, database, published, announced>>

Expire(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = "held"
    /\ copies' = [copies EXCEPT ![t] = Drop(@, c)]
    /\ unacked' = [unacked EXCEPT ![t] = Settled(t, c)]
    /\ closed' = [closed EXCEPT ![t] = @ \union {a}]
    /\ UNCHANGED <<sent, ready, acked, restored, database, published, announced>>

(* A worker that stops, or lost its connection, puts its tags back at      *)
(* once. Its copy may be ended by that, or may go on: a body that has      *)
(* begun, and one that still waits in a pool of threads.                   *)
RestoreOnShutdown(t, w, a) ==
  \E c \in DOMAIN copies[t] :
    /\ c.w = w /\ c.a = a
    /\ ~c.acked
    /\ unacked' = [unacked EXCEPT ![t] = @ \ {c.d}]
    /\ ready' = [ready EXCEPT ![t] = @ \union ({c.d} \intersect unacked[t])]
    /\ restored' = [restored EXCEPT ![t] = @ \union ({c.d} \intersect unacked[t])]
    /\ copies' \in {[copies EXCEPT ![t] = Drop(@, c)], copies}
    /\ UNCHANGED <<sent, acked, database, account>>

---------------------------------------------------------------- \* faults

(* A worker dies with all that it holds; the hash knows nothing of it. *)
Crash(t, w) ==
  /\ copies' = [copies EXCEPT ![t] =
       [c \in {x \in DOMAIN @ : x.w # w} |-> copies[t][c]]]
  /\ UNCHANGED <<broker, database, account>>

(* A worker dies after BRPOP and before HSET: no one has the message. *)
LosePop(t, d) ==
  /\ d \in ready[t]
  /\ ready' = [ready EXCEPT ![t] = @ \ {d}]
  /\ UNCHANGED <<sent, unacked, acked, restored, copies, database, account>>

----------------------------------------------------------------------------

Next ==
  \/ \E t \in Tasks : Publish(t)
  \/ \E t \in Tasks : \E w \in Holders, a \in Waiting(t), r \in BOOLEAN : Pickup(t, w, a, r)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Start(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Check(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Execute(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Skip(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Done(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Ack(t, w, a)
  \/ \E t \in Tasks : \E d \in unacked[t] : VisTimeout(t, d)
  \/ \E t \in Tasks : \E w \in Holding(t) : Crash(t, w)
  \/ \E t \in Tasks : \E d \in ready[t] : LosePop(t, d)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Undo(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Fail(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Nack(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Reject(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Revoke(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Expire(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : RestoreOnShutdown(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Retry(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Resend(t, w, a)
  \/ \E t \in Tasks : Republish(t)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------ \* invariants

TypeOK ==
  \A t \in Tasks :
    /\ ready[t] \union unacked[t] \union restored[t] \subseteq DOMAIN sent[t]
    /\ ready[t] \intersect unacked[t] = {}
    /\ \A c \in DOMAIN copies[t] :
         /\ c.d \in DOMAIN sent[t]
         /\ c.a = sent[t][c.d]
         /\ c.w \in Holders
         /\ c.phase \in Phases
         /\ copies[t][c] > 0
    /\ results[t] \in Nat
    /\ published[t] \in Nat
    /\ announced[t] \in Nat

(* An execution is known by (id, attempt): each attempt executes once, and *)
(* once more for each time that a caller republished the id. An attempt    *)
(* beyond the announced one counts as the announced one: until the worker  *)
(* has told of the retry, a second execution is a second execution.        *)
NoDoubleExecution ==
  \A t \in Tasks :
    /\ \A a \in DOMAIN executions[t] : executions[t][a] <= published[t]
    /\ Cardinality({a \in DOMAIN executions[t] : a >= announced[t]}) <= published[t]

(* What was acked was executed, or was closed as its worker told, or a     *)
(* copy is there that may yet do either: an early ack comes first.         *)
AckedWasExecuted ==
  \A t \in Tasks :
    acked[t] \subseteq DOMAIN executions[t] \union closed[t]
      \union {c.a : c \in {x \in DOMAIN copies[t] : x.phase \in Unfinished}}

(* An invariant of ends: judged on complete runs alone. *)
NothingLost ==
  \A t \in Tasks :
    \/ published[t] = 0
    \/ results[t] > 0
    \/ \E a \in closed[t] : \A d \in DOMAIN sent[t] : sent[t][d] # a + 1

(* Not true of Redis: an ack takes away no entry of a copy that another    *)
(* worker still has to do.                                                 *)
AckIsFenced ==
  \A t \in Tasks : \A c \in DOMAIN copies[t] :
    c.acked \/ c.phase = "done" \/ c.a \notin acked[t]

----------------------------------------------------------- \* exploration

Bound ==
  \A t \in Tasks :
    /\ Len(sent[t]) <= MaxMessages
    /\ Size(copies[t]) <= MaxCopies

(* Nothing is ever put back: no timeout, no shutdown, no nack. *)
NoRedelivery == \A t \in Tasks : restored[t] = {}

(* Early acks come at acceptance, before anything else happens to the task *)
AcceptedIsAcked ==
  \A t \in Tasks : \A c \in DOMAIN copies[t] : c.phase # "held" => c.acked

(* An ACTION_CONSTRAINT: no body that has begun is cut off before its work *)
(* is done, be it by a crash, a lost pool child or a cold stop.            *)
NoBodyCutOff ==
  \A t \in Tasks :
    \/ Size(copies[t])' >= Size(copies[t])
    \/ closed[t]' # closed[t]
    \/ sent[t]' # sent[t]
    \/ \A c \in DOMAIN copies[t] :
         c.phase \in {"begun", "passed"} =>
           c \in DOMAIN copies[t]' /\ copies[t][c]' = copies[t][c]
==============================================================================
