------------------------------- MODULE JetStream -------------------------------
(***************************************************************************)
(* A consumer of NATS JetStream with explicit acks as it is: what real     *)
(* runs are replayed against. README.md beside this file says in words     *)
(* what is modelled and what is not.                                       *)
(*                                                                         *)
(* The server keeps a message PENDING by its sequence in the stream, with  *)
(* one timer, AckWait, and the number of its deliveries. Whatever a worker *)
(* says - ack, nak, term, in progress - is said of the sequence: it counts *)
(* as long as the message is pending, be it for another worker's delivery. *)
(* The timer is the server's: no lost connection and no dead worker        *)
(* shortens it, and when it runs out no one is told. What workers do is    *)
(* left alone by all of this: they hold COPIES, one a delivery.            *)
(*                                                                         *)
(* Every variable is a function over Tasks, and every action touches one   *)
(* task, or all of them alike, so that the model falls apart by task. No   *)
(* guard bounds a count; Bound, a CONSTRAINT, is for exploration alone.    *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Tasks,         \* what a message is known by: its Nats-Msg-Id, or its sequence
  Workers,       \* the workers' names; {} where no log line names one
  Deliveries,    \* the numbers of deliveries that log lines name, from 0
  Sequences,     \* the stream's sequences that answers to publishers name
  Guard,         \* "none" | "checkThenInsert" | "atomicClaim"
  Deduplicates,  \* whether what is published again is dropped for certain: it
                 \* has its Nats-Msg-Id, and comes in the duplicate window
  MaxDeliver,    \* the consumer's limit of deliveries; 0: none, or not known
  MaxPublished,  \* Bound: how often a task is published
  MaxDelivered   \* Bound: deliveries of a message

ASSUME Guard \in {"none", "checkThenInsert", "atomicClaim"}
ASSUME MaxDeliver \in Nat
ASSUME Deduplicates \in BOOLEAN

VARIABLES
  published,     \* how often publishers sent it
  messages,      \* what the stream has of it, in their order: n, state, ...
  answered,      \* what publishers were told: [stored, dropped]
  copies,        \* what workers hold: a set, one copy a delivery
  acked,         \* whether an ack settled one of its messages
  executions,    \* its rows in the database
  claimed,       \* whether the guard's table has a claim for it
  closed         \* whether a worker told that it ended without an effect:
                 \* the body raised, or said "never again"

vars == <<published, messages, answered, copies, acked, executions, claimed, closed>>

stream == <<published, messages, answered>>
database == <<executions, claimed>>

(* Of a message: n deliveries were made. due: it is given to whoever asks   *)
(* next. out: it is pending, and the timer runs. settled: acked, or         *)
(* terminated. parked: it was delivered as often as the consumer allows.    *)
(* unseen: deliveries, by number, that no worker has told of: they lie in a *)
(* client's buffer, or were lost with it. taken: a worker has told of one.  *)
States == {"due", "out", "settled", "parked"}
Pending == {"due", "out"}

(* held: received, its body not begun. begun: the body runs. passed, found: *)
(* the guard let it go on, or told it that the work is done. executed: its  *)
(* effect is durable. skipped: it said that there is nothing to do. done:   *)
(* the body is over, its word to the server is still due.                   *)
Phases == {"held", "begun", "passed", "found", "executed", "skipped", "done"}
Unfinished == {"held", "begun", "passed"}

(* Where no log line names a worker, somebody held the copy all the same.   *)
Holders == IF Workers = {} THEN {"somebody"} ELSE Workers

Holding(t) == {c.w : c \in copies[t]}
Held(t) == {c.a : c \in copies[t]}
Answers == IF Sequences = {} THEN {0} ELSE Sequences
Of(t, w, a) == {c \in copies[t] : c.w = w /\ c.a = a}
Count(t, states) == Cardinality({m \in DOMAIN messages[t] : messages[t][m].state \in states})

Become(set, c, d) == (set \ {c}) \union {d}
Move(set, c, phase) == Become(set, c, [c EXCEPT !.phase = phase])

(* The body is over: the copy stays for the sake of its word, if that is due *)
Finish(set, c) == IF c.said THEN set \ {c} ELSE Move(set, c, "done")

(* The word is said: the copy stays while its body goes on                  *)
Say(set, c) == IF c.phase = "done" THEN set \ {c} ELSE Become(set, c, [c EXCEPT !.said = TRUE])

(* A message that is pending becomes something else; another stays          *)
Turn(list, m, states, state) ==
  [list EXCEPT ![m] = IF @.state \in states THEN [@ EXCEPT !.state = state] ELSE @]

------------------------------------------------------------- \* a message

New == [n |-> 0, state |-> "due", unseen |-> {}, taken |-> FALSE]

Init ==
  /\ published = [t \in Tasks |-> 0]
  /\ messages = [t \in Tasks |-> <<>>]
  /\ answered = [t \in Tasks |-> [stored |-> {}, dropped |-> 0]]
  /\ copies = [t \in Tasks |-> {}]
  /\ acked = [t \in Tasks |-> FALSE]
  /\ executions = [t \in Tasks |-> 0]
  /\ claimed = [t \in Tasks |-> FALSE]
  /\ closed = [t \in Tasks |-> FALSE]

Publish(t) ==
  /\ published[t] = 0
  /\ published' = [published EXCEPT ![t] = 1]
  /\ messages' = [messages EXCEPT ![t] = <<New>>]
  /\ UNCHANGED <<answered, copies, acked, database, closed>>

(* Sent again, since it is to be done again, or since no answer came.       *)
(* Within the stream's duplicate window a known Nats-Msg-Id is dropped;     *)
(* else it is one more message, which buys one more execution.              *)
Republish(t) ==
  /\ published[t] > 0
  /\ published' = [published EXCEPT ![t] = @ + 1]
  /\ \/ UNCHANGED messages
     \/ /\ ~Deduplicates
        /\ messages' = [messages EXCEPT ![t] = Append(@, New)]
  /\ UNCHANGED <<answered, copies, acked, database, closed>>

(* The server's answer to a publisher: stored under this sequence; or, dup, *)
(* dropped, and this is the sequence of the first. One answer a publishing. *)
PubAck(t, seq, dup) ==
  /\ dup => answered[t].dropped < published[t] - Len(messages[t])
  /\ ~dup => seq \notin answered[t].stored
  /\ ~dup => Cardinality(answered[t].stored) < Len(messages[t])
  /\ answered' = [answered EXCEPT ![t] =
       IF dup THEN [@ EXCEPT !.dropped = @ + 1] ELSE [@ EXCEPT !.stored = @ \union {seq}]]
  /\ UNCHANGED <<published, messages, copies, acked, database, closed>>

(* The server gives the message to whoever has asked, and its timer starts. *)
(* Before the worker's own code has it, it lies in a client's buffer: there *)
(* it may be lost, or come late, whatever has become of the message by then *)
(* - settled by another, or due again. One such delivery at a time; those   *)
(* before the next one that is told of are known by its number.             *)
Deliver(t) ==
  \E m \in DOMAIN messages[t] :
    LET x == messages[t][m] IN
    /\ x.state = "due"
    /\ x.unseen = {}
    /\ MaxDeliver = 0 \/ x.n < MaxDeliver
    /\ messages' = [messages EXCEPT ![t] = [@ EXCEPT ![m] =
         [x EXCEPT !.n = @ + 1, !.state = "out", !.unseen = {x.n}]]]
    /\ UNCHANGED <<published, answered, copies, acked, database, closed>>

(* A delivery reached the worker's own code. a: how often the message was   *)
(* delivered before this (num_delivered - 1). r: it was. Either it is just  *)
(* delivered, or it was, and comes from a buffer now.                       *)
Pickup(t, w, a, r, buffered) ==
  \E m \in DOMAIN messages[t] :
    LET x == messages[t][m] IN
    /\ r <=> a > 0
    /\ IF buffered
         THEN a \in x.unseen
         ELSE x.state = "due" /\ a >= x.n /\ (MaxDeliver = 0 \/ a < MaxDeliver)
    /\ messages' = [messages EXCEPT ![t] = [@ EXCEPT ![m] =
         IF buffered
           THEN [x EXCEPT !.unseen = @ \ {a}, !.taken = TRUE]
           ELSE [n |-> a + 1, state |-> "out", taken |-> TRUE,
                 unseen |-> x.unseen \union {b \in Deliveries : x.n <= b /\ b < a}]]]
    /\ copies' = [copies EXCEPT ![t] = @ \union
         {[m |-> m, a |-> a, w |-> w, phase |-> "held", said |-> FALSE]}]
    /\ UNCHANGED <<published, answered, acked, database, closed>>

Numbers(t) == Deliveries \union {messages[t][m].n : m \in DOMAIN messages[t]}
Unseen(t) == UNION {messages[t][m].unseen : m \in DOMAIN messages[t]}

(* What starts the timer, be it told of or not.                             *)
Delivery(t) ==
  \/ Deliver(t)
  \/ \E w \in Holders, a \in Numbers(t), r \in BOOLEAN : Pickup(t, w, a, r, FALSE)

(* AckWait, or the delay of a nak, is over.                                 *)
AckTimeout(t) ==
  \E m \in DOMAIN messages[t] :
    /\ messages[t][m].state = "out"
    /\ messages' = [messages EXCEPT ![t] = Turn(@, m, {"out"}, "due")]
    /\ UNCHANGED <<published, answered, copies, acked, database, closed>>

(* Due once more than the consumer allows: no one gets it any more.         *)
Park(t) ==
  \E m \in DOMAIN messages[t] :
    /\ messages[t][m].state = "due"
    /\ messages[t][m].n > 0
    /\ messages[t][m].n >= MaxDeliver
    /\ messages' = [messages EXCEPT ![t] = Turn(@, m, {"due"}, "parked")]
    /\ UNCHANGED <<published, answered, copies, acked, database, closed>>

---------------------------------------------------------------- \* a body

Start(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = "held"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "begun")]
    /\ UNCHANGED <<stream, acked, database, closed>>

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
    /\ UNCHANGED <<stream, acked, executions, closed>>

MayExecute == IF Guard = "none" THEN "begun" ELSE "passed"

(* The effect became durable. *)
Execute(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = MayExecute
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "executed")]
    /\ executions' = [executions EXCEPT ![t] = @ + 1]
    /\ UNCHANGED <<stream, acked, claimed, closed>>

(* The transaction failed after all, and a claim made in it goes with it.   *)
Undo(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = "executed"
    /\ copies' = [copies EXCEPT ![t] =
         Move(@, c, IF Guard = "checkThenInsert" THEN "passed" ELSE "begun")]
    /\ executions' = [executions EXCEPT ![t] = @ - 1]
    /\ claimed' = [claimed EXCEPT ![t] = FALSE]
    /\ UNCHANGED <<stream, acked, closed>>

Skip(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = "found"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "skipped")]
    /\ UNCHANGED <<stream, acked, database, closed>>

Done(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase \in {"executed", "skipped"}
    /\ copies' = [copies EXCEPT ![t] = Finish(@, c)]
    /\ UNCHANGED <<stream, acked, database, closed>>

(* The body raised. *)
Fail(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase \in {"begun", "passed", "found", "executed", "skipped"}
    /\ copies' = [copies EXCEPT ![t] = Finish(@, c)]
    /\ closed' = [closed EXCEPT ![t] = TRUE]
    /\ UNCHANGED <<stream, acked, database>>

---------------------------------------------------- \* what a worker says

(* The server has the ack: it settles the message, whoever has it now, also *)
(* where it is due and not yet delivered again. Of one that is settled or   *)
(* parked it does nothing, and is answered all the same.                    *)
Ack(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ acked' = [acked EXCEPT ![t] = @ \/ messages[t][c.m].state \in Pending]
    /\ messages' = [messages EXCEPT ![t] = Turn(@, c.m, Pending, "settled")]
    /\ UNCHANGED <<published, answered, database, closed>>

(* The ack was sent, and no answer was asked for, or none came: the server  *)
(* has it, or never will.                                                   *)
AckSent(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ \/ /\ acked' = [acked EXCEPT ![t] = @ \/ messages[t][c.m].state \in Pending]
          /\ messages' = [messages EXCEPT ![t] = Turn(@, c.m, Pending, "settled")]
       \/ /\ messages[t][c.m].state \in Pending
          /\ UNCHANGED <<acked, messages>>
    /\ UNCHANGED <<published, answered, database, closed>>

(* nak: due at once. If it is lost, the timer does the same a little later. *)
Nack(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ messages' = [messages EXCEPT ![t] = Turn(@, c.m, {"out"}, "due")]
    /\ UNCHANGED <<published, answered, acked, database, closed>>

(* nak with a delay: the timer is set anew, to this delay.                  *)
NackDelayed(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ UNCHANGED <<stream, acked, database, closed>>

(* term: never again, whoever has it now.                                   *)
Reject(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ messages' = [messages EXCEPT ![t] = Turn(@, c.m, Pending, "settled")]
    /\ closed' = [closed EXCEPT ![t] = TRUE]
    /\ UNCHANGED <<published, answered, acked, database>>

(* term was sent: the client asks for no answer.                            *)
RejectSent(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ \/ messages' = [messages EXCEPT ![t] = Turn(@, c.m, Pending, "settled")]
       \/ /\ messages[t][c.m].state \in Pending
          /\ UNCHANGED messages
    /\ closed' = [closed EXCEPT ![t] = TRUE]
    /\ UNCHANGED <<published, answered, acked, database>>

(* in progress: the timer is set anew, to AckWait, whoever has the message. *)
(* Here timers have no length, so that nothing else changes. A message that *)
(* is due already is delivered all the same.                                *)
InProgress(t, w, a) ==
  /\ w \in Holders
  /\ \E m \in DOMAIN messages[t] : a < messages[t][m].n
  /\ UNCHANGED vars

------------------------------------------------- \* connections and workers

(* The server's timers go on as they are. What w holds it goes on with.     *)
ConnLost(w) == w \in Holders /\ UNCHANGED vars
ConnUp(w) == w \in Holders /\ UNCHANGED vars

(* A worker dies with all that it holds; the server does not know of it.    *)
Crash(w) ==
  /\ copies' = [t \in Tasks |-> {c \in copies[t] : c.w # w}]
  /\ UNCHANGED <<stream, acked, database, closed>>

----------------------------------------------------------------------------

Next ==
  \/ \E t \in Tasks : Publish(t)
  \/ \E t \in Tasks : Delivery(t)
  \/ \E t \in Tasks : \E w \in Holders, a \in Unseen(t), r \in BOOLEAN : Pickup(t, w, a, r, TRUE)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Start(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Check(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Execute(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Skip(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Done(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Ack(t, w, a)
  \/ \E t \in Tasks : AckTimeout(t)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : AckSent(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Nack(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : NackDelayed(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Reject(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : RejectSent(t, w, a)
  \/ \E t \in Tasks : \E w \in Holders, a \in Deliveries \union Held(t) : InProgress(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Undo(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Fail(t, w, a)
  \/ \E t \in Tasks : Park(t)
  \/ \E t \in Tasks : Republish(t)
  \/ \E t \in Tasks : \E seq \in Answers, dup \in BOOLEAN : PubAck(t, seq, dup)
  \/ \E w \in Holders : ConnLost(w)
  \/ \E w \in Holders : ConnUp(w)
  \/ \E w \in Holders : Crash(w)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------ \* invariants

TypeOK ==
  \A t \in Tasks :
    /\ published[t] \in Nat /\ executions[t] \in Nat
    /\ {acked[t], claimed[t], closed[t]} \subseteq BOOLEAN
    /\ Len(messages[t]) <= published[t]
    /\ \A m \in DOMAIN messages[t] :
         /\ messages[t][m].n \in Nat
         /\ messages[t][m].state \in States
         /\ \A a \in messages[t][m].unseen : a < messages[t][m].n
         /\ messages[t][m].taken \in BOOLEAN
    /\ Cardinality(answered[t].stored) <= Len(messages[t])
    /\ \A c \in copies[t] :
         /\ c.m \in DOMAIN messages[t] /\ c.a < messages[t][c.m].n
         /\ c.w \in Holders
         /\ c.phase \in Phases
         /\ c.said \in BOOLEAN

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

(* Not true where workers die: what is delivered no more was executed.      *)
ParkedWasExecuted ==
  \A t \in Tasks : Count(t, {"parked"}) > 0 => Accounted(t)

(* An invariant of ends: judged on complete runs alone. *)
NothingLost ==
  \A t \in Tasks :
    \/ published[t] = 0
    \/ executions[t] > 0
    \/ closed[t]
    \/ Count(t, {"parked"}) > 0

(* Not true of JetStream: an ack settles nothing that another worker still  *)
(* has to do.                                                               *)
AckIsFenced ==
  \A t \in Tasks : \A c \in copies[t] :
    acked[t] => c.said \/ c.phase \notin Unfinished

----------------------------------------------------------- \* exploration

Bound ==
  \A t \in Tasks :
    /\ published[t] <= MaxPublished
    /\ \A m \in DOMAIN messages[t] : messages[t][m].n <= MaxDelivered

(* No worker says a word before its body is over. *)
LateAcks == \A t \in Tasks : \A c \in copies[t] : ~c.said

(* Nothing lies in a buffer: what is delivered reaches the worker's code. *)
Unbuffered == \A t \in Tasks : Unseen(t) = {}

(* Whether publishers had their answer changes nothing else. *)
Unanswered == \A t \in Tasks : answered[t].stored = {} /\ answered[t].dropped = 0

(* An ACTION_CONSTRAINT: no body that has begun is cut off by a crash.      *)
NoBodyCutOff ==
  \A t \in Tasks : \A c \in copies[t] :
    c.phase \in {"begun", "passed"} => \E d \in copies[t]' : d.m = c.m /\ d.a = c.a

(* Nothing is ever delivered again. *)
NoRedelivery ==
  \A t \in Tasks : \A m \in DOMAIN messages[t] :
    messages[t][m].n > 0 => messages[t][m].state # "due"
==============================================================================
