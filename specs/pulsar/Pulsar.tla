-------------------------------- MODULE Pulsar --------------------------------
(***************************************************************************)
(* A Shared or Key_Shared subscription of Apache Pulsar as it is: what     *)
(* real runs are replayed against. README.md beside this file says in      *)
(* words what is modelled and what is not.                                 *)
(*                                                                         *)
(* The broker has a message OUT with one consumer. That the ack is late is *)
(* the client's own business: its timer TRACKS what the application has    *)
(* received, and when it runs out the client asks the broker to give the   *)
(* message to whoever is next. Only the consumer that has it may ask; an   *)
(* ack counts whoever sends it. The broker gives a message to another also *)
(* when its consumer is gone. An ack is on its way for a while, and may be *)
(* lost with the one who sent it. What workers do is left alone by all of  *)
(* this: they hold COPIES, one a receipt.                                  *)
(*                                                                         *)
(* Every variable is a function over Tasks, and every action touches one   *)
(* task, or all of them alike, so that the model falls apart by task. No   *)
(* guard bounds a count; Bound, a CONSTRAINT, is for exploration alone.    *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Tasks,         \* what a message is known by: a property, its key, or its id
  Workers,       \* the workers' names; {} where no log line names one
  Batched,       \* what log lines say: {TRUE} if each came in a batch; or {}
  Guard,         \* "none" | "checkThenInsert" | "atomicClaim"
  MaxRedeliver,  \* the dead letter policy's; 0: there is none, or not known
  MaxPublished,  \* Bound: how often a task is published
  MaxReceived    \* Bound: receipts of a task

ASSUME Guard \in {"none", "checkThenInsert", "atomicClaim"}
ASSUME MaxRedeliver \in Nat
ASSUME Batched \subseteq BOOLEAN

VARIABLES
  published,     \* how often producers sent it
  messages,      \* what the topic has of it, in their order: n, state, owner, ...
  copies,        \* what workers hold: a set, one copy a receipt
  received,      \* how often it was received
  tracked,       \* whose timer runs for which of its messages: [m, w]
  asked,         \* whose negative ack is still to be sent: [m, w]
  flying,        \* whose ack is on its way: [m, w]
  acked,         \* whether an ack settled one of its messages
  executions,    \* its rows in the database
  claimed,       \* whether the guard's table has a claim for it
  closed         \* whether a worker told that it ended without an effect

vars == <<published, messages, copies, received, tracked, asked, flying, acked, executions, claimed, closed>>

topic == <<published, messages, acked>>
client == <<received, tracked, asked, flying>>
database == <<executions, claimed>>

(* Of a message: n, how often it was asked for again. due: it is given to   *)
(* whoever is next. out: owner has it; {} where it lies in a client's       *)
(* queue. settled: acked. dead: its client sent it to the dead letter       *)
(* topic. unseen: what lies in a client's queue, or was lost with it, by    *)
(* its count. anew: its consumer was lost, and if it was the last one, the  *)
(* counts begin anew. taken: a worker has received it.                      *)
States == {"due", "out", "settled", "dead"}

(* held: received, its body not begun. begun: the body runs. passed, found: *)
(* the guard let it go on, or told it that the work is done. executed: its  *)
(* effect is durable. skipped: it said that there is nothing to do. done:   *)
(* the body is over, its word to the broker is still due.                   *)
Phases == {"held", "begun", "passed", "found", "executed", "skipped", "done"}
Unfinished == {"held", "begun", "passed"}

(* Where no log line names a worker, somebody held the copy all the same.   *)
Holders == IF Workers = {} THEN {"somebody"} ELSE Workers

(* Where no log line says whether it came in a batch, it may have.          *)
Batches == IF Batched = {} THEN BOOLEAN ELSE Batched

Holding(t) == {c.w : c \in copies[t]}
Held(t) == {c.a : c \in copies[t]}
Of(t, w, a) == {c \in copies[t] : c.w = w /\ c.a = a}

Become(set, c, d) == (set \ {c}) \union {d}
Move(set, c, phase) == Become(set, c, [c EXCEPT !.phase = phase])

(* The body is over: the copy stays for the sake of its word, if that is due *)
Finish(set, c) == IF c.said THEN set \ {c} ELSE Move(set, c, "done")

(* The word is said: the copy stays while its body goes on                  *)
Say(set, c) == IF c.phase = "done" THEN set \ {c} ELSE Become(set, c, [c EXCEPT !.said = TRUE])

Others(set, w) == {x \in set : x.w # w}

IsOut(x, w) == x.state = "out" /\ x.owner = {w}
IsLast(x) == MaxRedeliver > 0 /\ x.n >= MaxRedeliver

(* A client asks for a message again: the broker counts it, and gives it to *)
(* the next - unless another has it by now, or it was acked.                *)
Again(list, m, w) ==
  [list EXCEPT ![m] = IF IsOut(@, w) THEN [@ EXCEPT !.n = @ + 1, !.state = "due", !.owner = {}] ELSE @]

(* Its consumer is gone: nothing is counted. If no other consumer is left,  *)
(* the broker forgets its counts.                                           *)
Left(x) == [x EXCEPT !.state = "due", !.owner = {}, !.anew = TRUE]
LeftBy(list, w) == [m \in DOMAIN list |-> IF IsOut(list[m], w) THEN Left(list[m]) ELSE list[m]]

Counts(x) == {x.n} \union (IF x.anew THEN {0} ELSE {})

------------------------------------------------------------- \* a message

New == [n |-> 0, state |-> "due", owner |-> {}, unseen |-> {}, anew |-> FALSE, taken |-> FALSE]

Init ==
  /\ published = [t \in Tasks |-> 0]
  /\ messages = [t \in Tasks |-> <<>>]
  /\ copies = [t \in Tasks |-> {}]
  /\ received = [t \in Tasks |-> 0]
  /\ tracked = [t \in Tasks |-> {}]
  /\ asked = [t \in Tasks |-> {}]
  /\ flying = [t \in Tasks |-> {}]
  /\ acked = [t \in Tasks |-> FALSE]
  /\ executions = [t \in Tasks |-> 0]
  /\ claimed = [t \in Tasks |-> FALSE]
  /\ closed = [t \in Tasks |-> FALSE]

Publish(t) ==
  /\ published[t] = 0
  /\ published' = [published EXCEPT ![t] = 1]
  /\ messages' = [messages EXCEPT ![t] = <<New>>]
  /\ UNCHANGED <<copies, client, acked, database, closed>>

(* Sent again, since it is to be done again, or since no answer came: one   *)
(* more message, unless the first was not stored, or the broker knows the   *)
(* producer and its sequence.                                               *)
Republish(t) ==
  /\ published[t] > 0
  /\ published' = [published EXCEPT ![t] = @ + 1]
  /\ \/ UNCHANGED messages
     \/ messages' = [messages EXCEPT ![t] = Append(@, New)]
  /\ UNCHANGED <<copies, client, acked, database, closed>>

(* The broker gives the message to a consumer, in whose queue it lies until *)
(* the application receives it. No timer runs for it there. What has become *)
(* of it by then - its consumer may have been lost, and another have it -   *)
(* the application does not know. One such delivery a count.                *)
Deliver(t) ==
  \E m \in DOMAIN messages[t] :
    LET x == messages[t][m] IN
    /\ x.state = "due"
    /\ \E n \in Counts(x) \ x.unseen :
         messages' = [messages EXCEPT ![t] = [@ EXCEPT ![m] =
           [x EXCEPT !.n = n, !.state = "out", !.unseen = @ \union {n}, !.anew = FALSE]]]
    /\ UNCHANGED <<published, copies, client, acked, database, closed>>

(* The application received it. a: its redelivery count. b: whether it came *)
(* in a batch. Either it is just delivered, or it comes from a queue now.   *)
Pickup(t, w, a, b, queued) ==
  \E m \in DOMAIN messages[t] :
    LET x == messages[t][m] IN
    /\ IF queued THEN a \in x.unseen ELSE x.state = "due" /\ a \in Counts(x)
    /\ messages' = [messages EXCEPT ![t] = [@ EXCEPT ![m] =
         IF queued
           THEN [x EXCEPT !.unseen = @ \ {a}, !.taken = TRUE,
                          !.owner = IF x.state = "out" /\ @ = {} THEN {w} ELSE @]
           ELSE [x EXCEPT !.n = a, !.state = "out", !.owner = {w}, !.anew = FALSE, !.taken = TRUE]]]
    /\ copies' = [copies EXCEPT ![t] = @ \union
         {[k |-> received[t], m |-> m, w |-> w, a |-> a, b |-> b, phase |-> "held", said |-> FALSE]}]
    /\ received' = [received EXCEPT ![t] = @ + 1]
    /\ tracked' = [tracked EXCEPT ![t] = @ \union {[m |-> m, w |-> w]}]
    /\ UNCHANGED <<published, asked, flying, acked, database, closed>>

Numbers(t) == {0} \union {messages[t][m].n : m \in DOMAIN messages[t]}
Unseen(t) == UNION {messages[t][m].unseen : m \in DOMAIN messages[t]}

-------------------------------------------------------- \* what clients do

(* The client's timer: not acked in time, so it asks for it again.          *)
AckTimeout(t, w) ==
  \E x \in tracked[t] :
    /\ x.w = w
    /\ ~(IsOut(messages[t][x.m], w) /\ IsLast(messages[t][x.m]))
    /\ messages' = [messages EXCEPT ![t] = Again(@, x.m, w)]
    /\ tracked' = [tracked EXCEPT ![t] = @ \ {x}]
    /\ UNCHANGED <<published, copies, received, asked, flying, acked, database, closed>>

(* The delay of a negative ack is over, and the client asks for it again.   *)
Redeliver(t, w) ==
  \E x \in asked[t] :
    /\ x.w = w
    /\ ~(IsOut(messages[t][x.m], w) /\ IsLast(messages[t][x.m]))
    /\ messages' = [messages EXCEPT ![t] = Again(@, x.m, w)]
    /\ asked' = [asked EXCEPT ![t] = @ \ {x}]
    /\ UNCHANGED <<published, copies, received, tracked, flying, acked, database, closed>>

(* It was asked for again as often as the dead letter policy allows: the    *)
(* client sends it to the dead letter topic and acks it, instead.           *)
DeadLetter(t, w) ==
  \E x \in tracked[t] \union asked[t] :
    /\ x.w = w
    /\ IsOut(messages[t][x.m], w)
    /\ IsLast(messages[t][x.m])
    /\ messages' = [messages EXCEPT ![t] = [@ EXCEPT ![x.m] = [@ EXCEPT !.state = "dead", !.owner = {}]]]
    /\ tracked' = [tracked EXCEPT ![t] = @ \ {x}]
    /\ asked' = [asked EXCEPT ![t] = @ \ {x}]
    /\ UNCHANGED <<published, copies, received, flying, acked, database, closed>>

(* The ack of a message is sent: it waits in the client for a moment, to go *)
(* with others, and no answer is asked for. Of a batch it waits until all   *)
(* are acked, if the broker takes no less; and the timer, which is of the   *)
(* whole batch, may run on.                                                 *)
Ack(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ tracked' = IF c.b THEN tracked ELSE [tracked EXCEPT ![t] = @ \ {[m |-> c.m, w |-> w]}]
    /\ flying' = [flying EXCEPT ![t] = @ \union {[m |-> c.m, w |-> w]}]
    /\ UNCHANGED <<topic, received, asked, database, closed>>

(* The broker has an ack: it settles the message, whoever has it now.       *)
AckArrives(t) ==
  \E x \in flying[t] :
    LET is == messages[t][x.m].state \in {"due", "out"} IN
    /\ flying' = [flying EXCEPT ![t] = @ \ {x}]
    /\ acked' = [acked EXCEPT ![t] = @ \/ is]
    /\ messages' = [messages EXCEPT ![t] = [@ EXCEPT ![x.m] =
         IF is THEN [@ EXCEPT !.state = "settled", !.owner = {}, !.anew = FALSE] ELSE @]]
    /\ UNCHANGED <<published, copies, received, tracked, asked, database, closed>>

(* The client refused the ack: its consumer is closed.                      *)
AckFail(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ UNCHANGED <<topic, client, database, closed>>

(* A negative ack: the client asks for it again, when a delay is over.      *)
Nack(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ tracked' = [tracked EXCEPT ![t] = @ \ {[m |-> c.m, w |-> w]}]
    /\ asked' = [asked EXCEPT ![t] = @ \union {[m |-> c.m, w |-> w]}]
    /\ UNCHANGED <<topic, received, flying, database, closed>>

---------------------------------------------------------------- \* a body

Start(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = "held"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "begun")]
    /\ UNCHANGED <<topic, client, database, closed>>

Known(t) == IF Guard = "atomicClaim" THEN claimed[t] ELSE executions[t] > 0

(* The body asks its guard. "checkThenInsert" looks for a row, and another  *)
(* may look before this one's is there. "atomicClaim" takes the claim if it *)
(* is free, in one step.                                                    *)
Check(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ Guard # "none"
    /\ c.phase = "begun"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, IF Known(t) THEN "found" ELSE "passed")]
    /\ claimed' = [claimed EXCEPT ![t] = @ \/ Guard = "atomicClaim"]
    /\ UNCHANGED <<topic, client, executions, closed>>

MayExecute == IF Guard = "none" THEN "begun" ELSE "passed"

(* The effect became durable. *)
Execute(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = MayExecute
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "executed")]
    /\ executions' = [executions EXCEPT ![t] = @ + 1]
    /\ UNCHANGED <<topic, client, claimed, closed>>

(* The transaction failed after all, and a claim made in it goes with it.   *)
Undo(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = "executed"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, IF Guard = "checkThenInsert" THEN "passed" ELSE "begun")]
    /\ executions' = [executions EXCEPT ![t] = @ - 1]
    /\ claimed' = [claimed EXCEPT ![t] = FALSE]
    /\ UNCHANGED <<topic, client, closed>>

Skip(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = "found"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "skipped")]
    /\ UNCHANGED <<topic, client, database, closed>>

Done(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase \in {"executed", "skipped"}
    /\ copies' = [copies EXCEPT ![t] = Finish(@, c)]
    /\ UNCHANGED <<topic, client, database, closed>>

(* The body raised. *)
Fail(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase \in {"begun", "passed", "found", "executed", "skipped"}
    /\ copies' = [copies EXCEPT ![t] = Finish(@, c)]
    /\ closed' = [closed EXCEPT ![t] = TRUE]
    /\ UNCHANGED <<topic, client, database>>

------------------------------------------------- \* connections and workers

(* The broker has lost the consumer that had the message, and gives it to   *)
(* the next. When the client is connected again its timers begin anew, so   *)
(* that none of before runs out. The application does not hear of it.       *)
Replay(t) ==
  \E m \in DOMAIN messages[t] :
    LET x == messages[t][m] IN
    /\ x.state = "out"
    /\ messages' = [messages EXCEPT ![t] = [@ EXCEPT ![m] = Left(x)]]
    /\ tracked' = [tracked EXCEPT ![t] = {y \in @ : y.m # m \/ y.w \notin x.owner}]
    /\ UNCHANGED <<published, copies, received, asked, flying, acked, database, closed>>

(* The same of all that w has.                                              *)
ConnLost(w) ==
  /\ w \in Holders
  /\ messages' = [t \in Tasks |-> LeftBy(messages[t], w)]
  /\ tracked' = [t \in Tasks |-> Others(tracked[t], w)]
  /\ UNCHANGED <<published, copies, received, asked, flying, acked, database, closed>>

ConnUp(w) == w \in Holders /\ UNCHANGED vars

(* A worker closes its consumer: acks that wait are sent, negative acks are *)
(* forgotten, and its bodies go on.                                         *)
Close(w) ==
  /\ w \in Holders
  /\ messages' = [t \in Tasks |-> LeftBy(messages[t], w)]
  /\ tracked' = [t \in Tasks |-> Others(tracked[t], w)]
  /\ asked' = [t \in Tasks |-> Others(asked[t], w)]
  /\ UNCHANGED <<published, copies, received, flying, acked, database, closed>>

(* A worker dies with all that it holds, and the acks that had not gone.    *)
Crash(w) ==
  /\ w \in Holders
  /\ messages' = [t \in Tasks |-> LeftBy(messages[t], w)]
  /\ copies' = [t \in Tasks |-> Others(copies[t], w)]
  /\ tracked' = [t \in Tasks |-> Others(tracked[t], w)]
  /\ asked' = [t \in Tasks |-> Others(asked[t], w)]
  /\ flying' = [t \in Tasks |-> Others(flying[t], w)]
  /\ UNCHANGED <<published, received, acked, database, closed>>

----------------------------------------------------------------------------

Next ==
  \/ \E t \in Tasks : Publish(t)
  \/ \E t \in Tasks : Deliver(t)
  \/ \E t \in Tasks : \E w \in Holders, a \in Numbers(t), b \in Batches : Pickup(t, w, a, b, FALSE)
  \/ \E t \in Tasks : \E w \in Holders, a \in Unseen(t), b \in Batches : Pickup(t, w, a, b, TRUE)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Start(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Check(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Execute(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Skip(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Done(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Ack(t, w, a)
  \/ \E t \in Tasks : AckArrives(t)
  \/ \E t \in Tasks : \E w \in Holders : AckTimeout(t, w)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : AckFail(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Nack(t, w, a)
  \/ \E t \in Tasks : \E w \in Holders : Redeliver(t, w)
  \/ \E t \in Tasks : \E w \in Holders : DeadLetter(t, w)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Undo(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Fail(t, w, a)
  \/ \E t \in Tasks : Republish(t)
  \/ \E t \in Tasks : Replay(t)
  \/ \E w \in Holders : ConnLost(w)
  \/ \E w \in Holders : ConnUp(w)
  \/ \E w \in Holders : Close(w)
  \/ \E w \in Holders : Crash(w)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------ \* invariants

TypeOK ==
  \A t \in Tasks :
    /\ {published[t], received[t], executions[t]} \subseteq Nat
    /\ {acked[t], claimed[t], closed[t]} \subseteq BOOLEAN
    /\ Len(messages[t]) <= published[t]
    /\ \A m \in DOMAIN messages[t] :
         LET x == messages[t][m] IN
         /\ x.n \in Nat
         /\ x.state \in States
         /\ x.owner \subseteq Holders
         /\ x.owner # {} => x.state = "out"
         /\ x.unseen \subseteq Nat
         /\ {x.anew, x.taken} \subseteq BOOLEAN
    /\ \A c \in copies[t] :
         /\ c.k < received[t] /\ c.m \in DOMAIN messages[t] /\ c.w \in Holders
         /\ c.a \in Nat /\ c.phase \in Phases /\ {c.b, c.said} \subseteq BOOLEAN
    /\ \A x \in tracked[t] \union asked[t] \union flying[t] : x.m \in DOMAIN messages[t] /\ x.w \in Holders

Taken(t) == Cardinality({m \in DOMAIN messages[t] : messages[t][m].taken})

(* A message executes once, however often it is delivered. That it was      *)
(* published again buys one more execution where it was stored again, which *)
(* shows when a worker has that message.                                    *)
NoDoubleExecution ==
  \A t \in Tasks : executions[t] <= Taken(t)

(* It was executed, or its worker told how else it ended, or a copy is      *)
(* left that may yet do it.                                                 *)
Accounted(t) ==
  \/ executions[t] > 0
  \/ closed[t]
  \/ \E c \in copies[t] : c.phase \in Unfinished

AckedWasExecuted ==
  \A t \in Tasks : acked[t] => Accounted(t)

IsDead(t) == \E m \in DOMAIN messages[t] : messages[t][m].state = "dead"

(* Not true where workers die: what is delivered no more was executed.      *)
DeadWasExecuted ==
  \A t \in Tasks : IsDead(t) => Accounted(t)

(* An invariant of ends: judged on complete runs alone. *)
NothingLost ==
  \A t \in Tasks : published[t] = 0 \/ executions[t] > 0 \/ closed[t] \/ IsDead(t)

(* Not true of Pulsar: an ack settles nothing that another worker still has *)
(* to do.                                                                   *)
AckIsFenced ==
  \A t \in Tasks : \A c \in copies[t] :
    acked[t] => c.said \/ c.phase \notin Unfinished

----------------------------------------------------------- \* exploration

Bound ==
  \A t \in Tasks :
    /\ published[t] <= MaxPublished
    /\ received[t] <= MaxReceived

(* No worker says a word before its body is over. *)
LateAcks == \A t \in Tasks : \A c \in copies[t] : ~c.said

(* Nothing lies in a queue: what is delivered is received. *)
Unqueued == \A t \in Tasks : Unseen(t) = {}

(* No worker says nack. *)
NoNacks == \A t \in Tasks : asked[t] = {}

(* An ACTION_CONSTRAINT: no body that has begun is cut off by a crash.      *)
NoBodyCutOff ==
  \A t \in Tasks : \A c \in copies[t] :
    c.phase \in {"begun", "passed"} => \E d \in copies'[t] : d.k = c.k

(* Nothing is ever delivered again. *)
NoRedelivery ==
  \A t \in Tasks : \A m \in DOMAIN messages[t] :
    messages[t][m].taken => messages[t][m].state # "due"

(* Every consumer stays. *)
NoLoss == \A t \in Tasks : \A m \in DOMAIN messages[t] : ~messages[t][m].anew

(* An ACTION_CONSTRAINT: workers ack in time, so that a timer runs out for  *)
(* what is acked alone.                                                     *)
InTime == \A t \in Tasks : \A x \in tracked[t] : x \in tracked'[t] \union flying[t] \union flying'[t]
==============================================================================
