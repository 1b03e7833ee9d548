-------------------------------- MODULE Queue --------------------------------
(***************************************************************************)
(* Any queue that delivers at least once: what is true of every such       *)
(* broker, and no more. README.md beside this file says in words what is   *)
(* modelled and what is not.                                               *)
(*                                                                         *)
(* A message waits, or is out with a worker. What a worker received is a   *)
(* DELIVERY; a timeout or a lost connection puts the message back and      *)
(* leaves what the worker does alone, so that one message may be in the    *)
(* hands of several workers, or several times in those of one.             *)
(*                                                                         *)
(* Every variable is a function over Tasks, and every action touches one   *)
(* task, or all of them alike, so that the model falls apart by task. No   *)
(* guard bounds a count; Bound, a CONSTRAINT, is for exploration alone.    *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Tasks,         \* what is to be executed once
  Workers,       \* the workers' names; {} where no log line names one
  Key,           \* what a task is known by. "message": the id of a message.
                 \* "work": what messages are about, be it one or many
  Guard,         \* "none" | "checkThenInsert" | "atomicClaim"
  MaxDeliveries  \* Bound: deliveries of a task that workers hold at once

ASSUME Key \in {"message", "work"}
ASSUME Guard \in {"none", "checkThenInsert", "atomicClaim"}

VARIABLES
  sent,          \* attempts that were sent: 0, and one more with each retry
  ready,         \* messages that wait: a bag. r: the message was put back once
  deliveries,    \* what workers received: a bag (delivery -> how many alike)
  acked,         \* attempts of which an ack settled a message
  executions,    \* rows of the task in the database, by attempt: a bag
  claims,        \* attempts that the guard's table has a claim for
  closed         \* attempts that ended without an effect, as their worker told

vars == <<sent, ready, deliveries, acked, executions, claims, closed>>

database == <<executions, claims>>

(* held: received, its body not begun. begun: the body runs. passed, found: *)
(* the guard let it go on, or told it that the work is done. executed: its  *)
(* effect is durable. skipped: it said that there is nothing to do. done:   *)
(* the body is over, the ack is still due. dead: no one works on it, which  *)
(* the broker does not know.                                                *)
Phases == {"held", "begun", "passed", "found", "executed", "skipped", "done", "dead"}
Unfinished == {"held", "begun", "passed"}

(* What the broker knows of a delivery. out: it waits for the worker's      *)
(* word. cut: it waits, and the connection is lost. gone: it has put the    *)
(* message back, and the worker's word does nothing. settled: it has the    *)
(* worker's word.                                                           *)
Waiting == {"out", "cut"}
Entries == Waiting \union {"gone", "settled"}

(* Where no log line names a worker, somebody received it all the same.     *)
Holders == IF Workers = {} THEN {"somebody"} ELSE Workers

Living(t) == {c \in DOMAIN deliveries[t] : c.phase # "dead"}
Holding(t) == {c.w : c \in Living(t)}
Held(t) == {c.a : c \in Living(t)}
Out(t) == {c.a : c \in {x \in DOMAIN deliveries[t] : x.entry \in Waiting}}

----------------------------------------------------------------- \* bags

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

(* The body is over: the delivery stays for the sake of its ack, if due     *)
Finish(bag, c) == IF c.entry = "settled" THEN Drop(bag, c) ELSE Move(bag, c, "done")

(* The message was put back: what no one works on is forgotten              *)
Forget(bag, c) == IF c.phase = "dead" THEN Drop(bag, c) ELSE Add(Drop(bag, c), [c EXCEPT !.entry = "gone"])

(* The deliveries of w lose their connection                                *)
Cut(bag, w) ==
  LET Lost(c) == IF c.w = w /\ c.entry = "out" THEN [c EXCEPT !.entry = "cut"] ELSE c
      Count(c) == IF c \in DOMAIN bag THEN bag[c] ELSE 0
      Twin(c) == [c EXCEPT !.entry = "out"]
  IN [c \in {Lost(x) : x \in DOMAIN bag} |->
        Count(c) + IF c.w = w /\ c.entry = "cut" THEN Count(Twin(c)) ELSE 0]

(* w dies: no one works on its deliveries                                   *)
Die(bag, w) ==
  LET Own == {c \in DOMAIN bag : c.w = w}
      Left(c) == [c EXCEPT !.phase = "dead", !.entry = "cut"]
      Alike(d) == {c \in Own : c.entry \in Waiting /\ Left(c) = d}
  IN [c \in (DOMAIN bag \ Own) \union {Left(x) : x \in {y \in Own : y.entry \in Waiting}} |->
        IF c.w # w THEN bag[c] ELSE Cardinality(UNION {{x} \X (1..bag[x]) : x \in Alike(c)})]

------------------------------------------------------------- \* a message

Init ==
  /\ sent = [t \in Tasks |-> {}]
  /\ ready = [t \in Tasks |-> <<>>]
  /\ deliveries = [t \in Tasks |-> <<>>]
  /\ acked = [t \in Tasks |-> {}]
  /\ executions = [t \in Tasks |-> <<>>]
  /\ claims = [t \in Tasks |-> {}]
  /\ closed = [t \in Tasks |-> {}]

(* How many messages there are about one work is not known, nor counted.    *)
Put(bag, a, r) == IF Key = "message" THEN Add(bag, [a |-> a, r |-> r]) ELSE bag
Take(bag, a, r) == IF Key = "message" THEN Drop(bag, [a |-> a, r |-> r]) ELSE bag
Waits(t, a, r) == Key = "message" => [a |-> a, r |-> r] \in DOMAIN ready[t]

(* One message has an id; about one work there may be many.                 *)
Publish(t) ==
  /\ Key = "message" => sent[t] = {}
  /\ sent' = [sent EXCEPT ![t] = @ \union {0}]
  /\ ready' = [ready EXCEPT ![t] = Put(@, 0, FALSE)]
  /\ UNCHANGED <<deliveries, acked, database, closed>>

(* The message reached the worker's own code. r: the broker says that it    *)
(* was delivered before.                                                    *)
Pickup(t, w, a, r) ==
  /\ Waits(t, a, r)
  /\ ready' = [ready EXCEPT ![t] = Take(@, a, r)]
  /\ deliveries' = [deliveries EXCEPT ![t] =
       Add(@, [a |-> a, w |-> w, phase |-> "held", entry |-> "out"])]
  /\ UNCHANGED <<sent, acked, database, closed>>

PutBack(t, c) ==
  /\ ready' = [ready EXCEPT ![t] = Put(@, c.a, TRUE)]
  /\ deliveries' = [deliveries EXCEPT ![t] = Forget(@, c)]
  /\ UNCHANGED <<sent, acked, database, closed>>

(* The broker has waited for too long: a visibility timeout, an ack wait, a *)
(* consumer timeout, the claim of an idle entry.                            *)
VisTimeout(t, a) ==
  \E c \in DOMAIN deliveries[t] : c.a = a /\ c.entry \in Waiting /\ PutBack(t, c)

(* The broker has noticed a lost connection.                                *)
Requeue(t, a) ==
  \E c \in DOMAIN deliveries[t] : c.a = a /\ c.entry = "cut" /\ PutBack(t, c)

---------------------------------------------------------------- \* a body

Start(t, w, a) ==
  \E c \in DOMAIN deliveries[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = "held"
    /\ deliveries' = [deliveries EXCEPT ![t] = Move(@, c, "begun")]
    /\ UNCHANGED <<sent, ready, acked, database, closed>>

Known(t) == IF Guard = "atomicClaim" THEN claims[t] ELSE DOMAIN executions[t]

(* The body asks its guard. "checkThenInsert" looks for a row (or for a     *)
(* lock), and another may look before this one's is there. "atomicClaim"    *)
(* takes the claim if it is free, in one step.                              *)
Check(t, w, a) ==
  \E c \in DOMAIN deliveries[t] :
    /\ Guard # "none"
    /\ c.w = w /\ c.a = a
    /\ c.phase = "begun"
    /\ deliveries' = [deliveries EXCEPT ![t] =
         Move(@, c, IF a \in Known(t) THEN "found" ELSE "passed")]
    /\ claims' = [claims EXCEPT ![t] =
         IF Guard = "atomicClaim" THEN @ \union {a} ELSE @]
    /\ UNCHANGED <<sent, ready, acked, executions, closed>>

MayExecute == IF Guard = "none" THEN "begun" ELSE "passed"

(* The effect became durable. *)
Execute(t, w, a) ==
  \E c \in DOMAIN deliveries[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = MayExecute
    /\ deliveries' = [deliveries EXCEPT ![t] = Move(@, c, "executed")]
    /\ executions' = [executions EXCEPT ![t] = Add(@, a)]
    /\ UNCHANGED <<sent, ready, acked, claims, closed>>

(* The transaction failed after all, and a claim made in it goes with it.   *)
Undo(t, w, a) ==
  \E c \in DOMAIN deliveries[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = "executed"
    /\ deliveries' = [deliveries EXCEPT ![t] =
         Move(@, c, IF Guard = "checkThenInsert" THEN "passed" ELSE "begun")]
    /\ executions' = [executions EXCEPT ![t] = Drop(@, a)]
    /\ claims' = [claims EXCEPT ![t] = @ \ {a}]
    /\ UNCHANGED <<sent, ready, acked, closed>>

Skip(t, w, a) ==
  \E c \in DOMAIN deliveries[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase = "found"
    /\ deliveries' = [deliveries EXCEPT ![t] = Move(@, c, "skipped")]
    /\ UNCHANGED <<sent, ready, acked, database, closed>>

Done(t, w, a) ==
  \E c \in DOMAIN deliveries[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase \in {"executed", "skipped"}
    /\ deliveries' = [deliveries EXCEPT ![t] = Finish(@, c)]
    /\ UNCHANGED <<sent, ready, acked, database, closed>>

(* The body raised. *)
Fail(t, w, a) ==
  \E c \in DOMAIN deliveries[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase \in {"begun", "passed", "found", "executed", "skipped"}
    /\ deliveries' = [deliveries EXCEPT ![t] = Finish(@, c)]
    /\ closed' = [closed EXCEPT ![t] = @ \union {a}]
    /\ UNCHANGED <<sent, ready, acked, database>>

(* The same task in a new message, attempt + 1. *)
Retry(t, w, a) ==
  \E c \in DOMAIN deliveries[t] :
    /\ c.w = w /\ c.a = a
    /\ c.phase \in {"begun", "passed", "executed"}
    /\ sent' = [sent EXCEPT ![t] = @ \union {a + 1}]
    /\ ready' = [ready EXCEPT ![t] = Put(@, a + 1, FALSE)]
    /\ deliveries' = [deliveries EXCEPT ![t] = Finish(@, c)]
    /\ closed' = [closed EXCEPT ![t] = @ \union {a}]
    /\ UNCHANGED <<acked, database>>

---------------------------------------------------------------- \* settling

(* Before the body or after it, as the worker likes. Of a message that was  *)
(* put back it does nothing, and is logged all the same.                    *)
Ack(t, w, a) ==
  \E c \in Living(t) :
    /\ c.w = w /\ c.a = a
    /\ c.entry # "settled"
    /\ deliveries' = [deliveries EXCEPT ![t] =
         IF c.phase = "done" THEN Drop(@, c) ELSE Add(Drop(@, c), [c EXCEPT !.entry = "settled"])]
    /\ acked' = [acked EXCEPT ![t] = IF c.entry \in Waiting THEN @ \union {a} ELSE @]
    /\ UNCHANGED <<sent, ready, database, closed>>

(* The worker could not ack, since its connection is lost. *)
AckFail(t, w, a) ==
  \E c \in Living(t) :
    /\ c.w = w /\ c.a = a
    /\ c.phase = "done"
    /\ deliveries' = [deliveries EXCEPT ![t] =
         IF c.entry \in Waiting
           THEN Add(Drop(@, c), [c EXCEPT !.phase = "dead", !.entry = "cut"])
           ELSE Drop(@, c)]
    /\ UNCHANGED <<sent, ready, acked, database, closed>>

(* Again, please. *)
Nack(t, w, a) ==
  \E c \in Living(t) :
    /\ c.w = w /\ c.a = a
    /\ c.entry # "settled"
    /\ ready' = [ready EXCEPT ![t] = IF c.entry \in Waiting THEN Put(@, a, TRUE) ELSE @]
    /\ deliveries' = [deliveries EXCEPT ![t] = Drop(@, c)]
    /\ UNCHANGED <<sent, acked, database, closed>>

(* Never again. *)
Reject(t, w, a) ==
  \E c \in Living(t) :
    /\ c.w = w /\ c.a = a
    /\ c.entry # "settled"
    /\ deliveries' = [deliveries EXCEPT ![t] = Drop(@, c)]
    /\ closed' = [closed EXCEPT ![t] = @ \union {a}]
    /\ UNCHANGED <<sent, ready, acked, database>>

------------------------------------------------- \* connections and workers

(* w has lost its connection, or the broker went away. Bodies go on. *)
ConnLost(w) ==
  /\ deliveries' = [t \in Tasks |-> Cut(deliveries[t], w)]
  /\ UNCHANGED <<sent, ready, acked, database, closed>>

(* w is connected again: what it receives now comes over a new connection. *)
ConnUp(w) ==
  /\ w \in Holders
  /\ UNCHANGED vars

Crash(w) ==
  /\ deliveries' = [t \in Tasks |-> Die(deliveries[t], w)]
  /\ UNCHANGED <<sent, ready, acked, database, closed>>

----------------------------------------------------------------------------

Next ==
  \/ \E t \in Tasks : Publish(t)
  \/ \E t \in Tasks : \E w \in Holders, a \in sent[t], r \in BOOLEAN : Pickup(t, w, a, r)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Start(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Check(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Execute(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Skip(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Done(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Ack(t, w, a)
  \/ \E t \in Tasks : \E a \in Out(t) : VisTimeout(t, a)
  \/ \E t \in Tasks : \E a \in Out(t) : Requeue(t, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Undo(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Fail(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Retry(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : AckFail(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Nack(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Reject(t, w, a)
  \/ \E w \in Holders : ConnLost(w)
  \/ \E w \in Holders : ConnUp(w)
  \/ \E w \in Holders : Crash(w)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------ \* invariants

TypeOK ==
  \A t \in Tasks :
    /\ sent[t] \subseteq Nat
    /\ \A m \in DOMAIN ready[t] : m.a \in sent[t] /\ m.r \in BOOLEAN /\ ready[t][m] > 0
    /\ \A c \in DOMAIN deliveries[t] :
         /\ c.a \in sent[t]
         /\ c.w \in Holders
         /\ c.phase \in Phases
         /\ c.entry \in Entries
         /\ deliveries[t][c] > 0

(* Each attempt executes once. A retry buys one more execution; a timeout,  *)
(* a lost connection, or one more message about the same work buys none.    *)
NoDoubleExecution ==
  \A t \in Tasks : \A a \in DOMAIN executions[t] : executions[t][a] <= 1

(* What was acked was executed, or was closed as its worker told, or a      *)
(* delivery is there that may yet do either.                                *)
AckedWasExecuted ==
  \A t \in Tasks :
    acked[t] \subseteq DOMAIN executions[t] \union closed[t]
      \union {c.a : c \in {x \in DOMAIN deliveries[t] : x.phase \in Unfinished}}

(* An invariant of ends: judged on complete runs alone. *)
NothingLost ==
  \A t \in Tasks :
    \/ sent[t] = {}
    \/ DOMAIN executions[t] # {}
    \/ \E a \in closed[t] : a + 1 \notin sent[t]

----------------------------------------------------------- \* exploration

Bound ==
  \A t \in Tasks :
    /\ sent[t] \subseteq {0}
    /\ Size(deliveries[t]) <= MaxDeliveries

(* No worker acks before its body is over. *)
LateAcks ==
  \A t \in Tasks : \A c \in DOMAIN deliveries[t] :
    c.entry = "settled" => c.phase \notin Unfinished

In(t, phases) ==
  Size([c \in {x \in DOMAIN deliveries[t] : x.phase \in phases} |-> deliveries[t][c]])

(* An ACTION_CONSTRAINT: no body that has begun is cut off before its work  *)
(* is done, be it by a crash or a nack.                                     *)
NoBodyCutOff ==
  \A t \in Tasks :
    \/ In(t, {"begun", "passed"})' >= In(t, {"begun", "passed"})
    \/ In(t, {"found"})' > In(t, {"found"})
    \/ executions[t]' # executions[t]
    \/ closed[t]' # closed[t]

(* Nothing is ever put back. *)
NoRedelivery ==
  \A t \in Tasks :
    /\ \A m \in DOMAIN ready[t] : ~m.r
    /\ \A c \in DOMAIN deliveries[t] : c.entry # "gone"
==============================================================================
