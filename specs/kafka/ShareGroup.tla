------------------------------ MODULE ShareGroup ------------------------------
(***************************************************************************)
(* A share group of Kafka (KIP-932) as it is: what real runs are replayed  *)
(* against. README.md beside this file says in words what is modelled and  *)
(* what is not.                                                            *)
(*                                                                         *)
(* The members of a share group have no partitions of their own: the       *)
(* broker gives each record to one of them, LOCKS it for a while, counts   *)
(* its deliveries, and takes a word about each record. When the lock is    *)
(* over, or its member is gone, the record is AVAILABLE again; who had it  *)
(* is told nothing, and goes on with its COPY. A word is taken only from   *)
(* the member that has the record: a late one is refused.                  *)
(*                                                                         *)
(* Every variable is a function over Tasks, and every action touches one   *)
(* task, or all of them alike, so that the model falls apart by task. No   *)
(* guard bounds a count; Bound, a CONSTRAINT, is for exploration alone.    *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Tasks,         \* what a message is known by: a header, its key, or its place
  Workers,       \* the members' names; {} where no log line names one
  Partitions,    \* the partitions of the topic
  Offsets,       \* the offsets at which messages stand
  Deliveries,    \* the numbers of deliveries that log lines name, from 0
  Guard,         \* "none" | "checkThenInsert" | "atomicClaim"
  Fenced,        \* whether the broker refuses the words of others: it does
  MaxDeliver,    \* the broker's limit of deliveries; 0: none, or not known
  MaxPublished,  \* Bound: how often a task is published
  MaxReceived    \* Bound: receipts of a task

ASSUME Guard \in {"none", "checkThenInsert", "atomicClaim"}
ASSUME Fenced \in BOOLEAN
ASSUME MaxDeliver \in Nat

VARIABLES
  published,     \* how often producers sent it
  messages,      \* its records, as far as members have received them
  copies,        \* what members hold: a set, one copy a receipt
  received,      \* how often it was received
  executions,    \* its rows in the database
  claimed,       \* whether the guard's table has a claim for it
  closed         \* whether a member told that it ended without an effect

vars == <<published, messages, copies, received, executions, claimed, closed>>

log == <<published, messages, received>>
database == <<executions, claimed>>

(* Of a record at p and o: n deliveries were made. available: the next who  *)
(* asks gets it. acquired: owner has it; {} where it lies in a client's     *)
(* buffer. acked: owner said accept. parked: owner said reject, or it was   *)
(* delivered as often as the broker allows; no one gets it any more.        *)
(* unseen: deliveries, by number, that no member has told of: they lie in a *)
(* client's buffer, or were lost with it.                                   *)
States == {"available", "acquired", "acked", "parked"}

(* held: received, its body not begun. begun: the body runs. passed, found: *)
(* the guard let it go on, or told it that the work is done. executed: its  *)
(* effect is durable. skipped: it said that there is nothing to do. done:   *)
(* the body is over, its word to the broker is still due.                   *)
Phases == {"held", "begun", "passed", "found", "executed", "skipped", "done"}
Unfinished == {"held", "begun", "passed"}

(* Where no log line names a member, somebody received it all the same.     *)
Holders == IF Workers = {} THEN {"somebody"} ELSE Workers

Holding(t) == {c.w : c \in copies[t]}
Held(t) == {c.a : c \in copies[t]}
Of(t, w, a) == {c \in copies[t] : c.w = w /\ c.a = a}

Become(set, c, d) == (set \ {c}) \union {d}
Move(set, c, phase) == Become(set, c, [c EXCEPT !.phase = phase])

(* The body is over: the copy stays for the sake of its word, if that is due *)
Finish(set, c) == IF c.said THEN set \ {c} ELSE Move(set, c, "done")

(* The word is said: the copy stays while its body goes on                  *)
Say(set, c) == IF c.phase = "done" THEN set \ {c} ELSE Become(set, c, [c EXCEPT !.said = TRUE])

At(x, p, o) == x.p = p /\ x.o = o
Places(t) == {[p |-> x.p, o |-> x.o] : x \in messages[t]}

(* No one has it any more; it is for the next, if it may be delivered again *)
Free(x) == [x EXCEPT !.state = IF MaxDeliver > 0 /\ x.n >= MaxDeliver THEN "parked" ELSE "available", !.owner = {}]
FreeOf(set, w) == {IF x.state = "acquired" /\ x.owner = {w} THEN Free(x) ELSE x : x \in set}

------------------------------------------------------------- \* a message

New(p, o) == [p |-> p, o |-> o, n |-> 0, state |-> "available", owner |-> {}, unseen |-> {}]

(* The record at a place, be it known yet or not                            *)
RecordAt(t, p, o) ==
  IF \E x \in messages[t] : At(x, p, o) THEN {x \in messages[t] : At(x, p, o)}
  ELSE IF Cardinality(messages[t]) < published[t] THEN {New(p, o)} ELSE {}

Init ==
  /\ published = [t \in Tasks |-> 0]
  /\ messages = [t \in Tasks |-> {}]
  /\ copies = [t \in Tasks |-> {}]
  /\ received = [t \in Tasks |-> 0]
  /\ executions = [t \in Tasks |-> 0]
  /\ claimed = [t \in Tasks |-> FALSE]
  /\ closed = [t \in Tasks |-> FALSE]

Publish(t) ==
  /\ published[t] = 0
  /\ published' = [published EXCEPT ![t] = 1]
  /\ UNCHANGED <<messages, copies, received, database, closed>>

(* One more message about the same: it stands at another offset, which      *)
(* shows when a member has it, and buys one more execution.                 *)
Republish(t) ==
  /\ published[t] > 0
  /\ published' = [published EXCEPT ![t] = @ + 1]
  /\ UNCHANGED <<messages, copies, received, database, closed>>

(* The broker gives the record to a client, and locks it. Before the        *)
(* application has it, it lies in that client's buffer: there it may be     *)
(* lost, or come late, whatever has become of the record by then.           *)
Acquire(t) ==
  \E x \in messages[t] :
    /\ x.state = "available"
    /\ x.unseen = {}
    /\ messages' = [messages EXCEPT ![t] =
         Become(@, x, [x EXCEPT !.n = @ + 1, !.state = "acquired", !.unseen = {x.n}])]
    /\ UNCHANGED <<published, copies, received, database, closed>>

(* The application received it. a: its deliveries before this one. Either   *)
(* it is just acquired, or it was, and comes from a buffer now. What no     *)
(* member has told of yet may have been delivered to some and lost.         *)
Pickup(t, w, p, o, a, buffered) ==
  \E x \in RecordAt(t, p, o) :
    /\ IF buffered
         THEN a \in x.unseen
         ELSE x.state = "available" /\ a >= x.n /\ (MaxDeliver = 0 \/ a < MaxDeliver)
    /\ messages' = [messages EXCEPT ![t] = Become(@, x,
         IF buffered
           THEN [x EXCEPT !.unseen = @ \ {a}, !.owner = IF x.state = "acquired" /\ @ = {} THEN {w} ELSE @]
           ELSE [x EXCEPT !.n = a + 1, !.state = "acquired", !.owner = {w},
                          !.unseen = @ \union {b \in Deliveries : x.n <= b /\ b < a}])]
    /\ copies' = [copies EXCEPT ![t] = @ \union
         {[k |-> received[t], p |-> p, o |-> o, w |-> w, a |-> a, phase |-> "held", said |-> FALSE]}]
    /\ received' = [received EXCEPT ![t] = @ + 1]
    /\ UNCHANGED <<published, database, closed>>

Numbers(t) == {0} \union Deliveries \union {x.n : x \in messages[t]}
Unseen(t) == UNION {x.unseen : x \in messages[t]}

(* What begins a lock, be it told of or not.                                *)
Delivery(t) ==
  \/ Acquire(t)
  \/ \E w \in Holders, p \in Partitions, o \in Offsets, a \in Numbers(t) : Pickup(t, w, p, o, a, FALSE)

(* The lock is over.                                                        *)
LockTimeout(t) ==
  \E x \in messages[t] :
    /\ x.state = "acquired"
    /\ messages' = [messages EXCEPT ![t] = Become(@, x, Free(x))]
    /\ UNCHANGED <<published, copies, received, database, closed>>

(* The broker lost the member that had it.                                  *)
Release(t) ==
  \E x \in messages[t] :
    /\ x.state = "acquired"
    /\ messages' = [messages EXCEPT ![t] = Become(@, x, Free(x))]
    /\ UNCHANGED <<published, copies, received, database, closed>>

(* The broker begins anew, or another one takes the partition over: what it *)
(* had not written, that a record is acquired, and since when, is forgotten. *)
Forget(t) ==
  \E x \in messages[t] : \E n \in 0 .. x.n :
    /\ x.state \in {"available", "acquired"}
    /\ messages' = [messages EXCEPT ![t] = Become(@, x, [x EXCEPT !.n = n, !.state = "available", !.owner = {}])]
    /\ UNCHANGED <<published, copies, received, database, closed>>

---------------------------------------------------------------- \* a body

Start(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = "held"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "begun")]
    /\ UNCHANGED <<log, database, closed>>

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
    /\ UNCHANGED <<log, executions, closed>>

MayExecute == IF Guard = "none" THEN "begun" ELSE "passed"

(* The effect became durable. *)
Execute(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = MayExecute
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "executed")]
    /\ executions' = [executions EXCEPT ![t] = @ + 1]
    /\ UNCHANGED <<log, claimed, closed>>

(* The transaction failed after all, and a claim made in it goes with it.   *)
Undo(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = "executed"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, IF Guard = "checkThenInsert" THEN "passed" ELSE "begun")]
    /\ executions' = [executions EXCEPT ![t] = @ - 1]
    /\ claimed' = [claimed EXCEPT ![t] = FALSE]
    /\ UNCHANGED <<log, closed>>

Skip(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase = "found"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "skipped")]
    /\ UNCHANGED <<log, database, closed>>

Done(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase \in {"executed", "skipped"}
    /\ copies' = [copies EXCEPT ![t] = Finish(@, c)]
    /\ UNCHANGED <<log, database, closed>>

(* The body raised. *)
Fail(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ c.phase \in {"begun", "passed", "found", "executed", "skipped"}
    /\ copies' = [copies EXCEPT ![t] = Finish(@, c)]
    /\ closed' = [closed EXCEPT ![t] = TRUE]
    /\ UNCHANGED <<log, database>>

---------------------------------------------------- \* what a member says

Has(x, c) == x.state = "acquired" /\ (Fenced => x.owner = {c.w})

(* Of what no one is to get any more each word is taken, and does nothing.  *)
IsOver(x) == x.state \in {"acked", "parked"}

(* A word that the broker took: of the member that has the record, by       *)
(* whichever of its deliveries. The record is y then.                       *)
Word(t, c, x, y) ==
  /\ ~c.said
  /\ At(x, c.p, c.o)
  /\ Has(x, c) \/ IsOver(x)
  /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
  /\ messages' = [messages EXCEPT ![t] = Become(@, x, IF IsOver(x) THEN x ELSE y)]

(* It took the word, accept. *)
Ack(t, w, a) ==
  \E c \in Of(t, w, a) : \E x \in messages[t] :
    /\ Word(t, c, x, [x EXCEPT !.state = "acked"])
    /\ UNCHANGED <<published, received, database, closed>>

(* It refused a word: the record is another's, or no one's.                 *)
AckFail(t, w, a) ==
  \E c \in Of(t, w, a) :
    /\ ~c.said
    /\ copies' = [copies EXCEPT ![t] = Say(@, c)]
    /\ UNCHANGED <<log, database, closed>>

(* It took the word, release: for the next.                                 *)
Nack(t, w, a) ==
  \E c \in Of(t, w, a) : \E x \in messages[t] :
    /\ Word(t, c, x, Free(x))
    /\ UNCHANGED <<published, received, database, closed>>

(* It took the word, reject: never again.                                   *)
Reject(t, w, a) ==
  \E c \in Of(t, w, a) : \E x \in messages[t] :
    /\ Word(t, c, x, [x EXCEPT !.state = "parked"])
    /\ closed' = [closed EXCEPT ![t] = TRUE]
    /\ UNCHANGED <<published, received, database>>

(* A member leaves: what it had is for the next, and its bodies go on.      *)
Close(w) ==
  /\ w \in Holders
  /\ messages' = [t \in Tasks |-> FreeOf(messages[t], w)]
  /\ UNCHANGED <<published, copies, received, database, closed>>

(* A member dies with all that it holds, and says nothing more.             *)
Crash(w) ==
  /\ w \in Holders
  /\ messages' = [t \in Tasks |-> FreeOf(messages[t], w)]
  /\ copies' = [t \in Tasks |-> {c \in copies[t] : c.w # w}]
  /\ UNCHANGED <<published, received, database, closed>>

----------------------------------------------------------------------------

Next ==
  \/ \E t \in Tasks : Publish(t)
  \/ \E t \in Tasks : Delivery(t)
  \/ \E t \in Tasks : \E w \in Holders, p \in Partitions, o \in Offsets, a \in Unseen(t) : Pickup(t, w, p, o, a, TRUE)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Start(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Check(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Execute(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Skip(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Done(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Ack(t, w, a)
  \/ \E t \in Tasks : LockTimeout(t)
  \/ \E t \in Tasks : Release(t)
  \/ \E t \in Tasks : Forget(t)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : AckFail(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Nack(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Reject(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Undo(t, w, a)
  \/ \E t \in Tasks : \E w \in Holding(t), a \in Held(t) : Fail(t, w, a)
  \/ \E t \in Tasks : Republish(t)
  \/ \E w \in Holders : Close(w)
  \/ \E w \in Holders : Crash(w)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------ \* invariants

TypeOK ==
  \A t \in Tasks :
    /\ {published[t], received[t], executions[t]} \subseteq Nat
    /\ {claimed[t], closed[t]} \subseteq BOOLEAN
    /\ Cardinality(Places(t)) = Cardinality(messages[t])
    /\ Cardinality(messages[t]) <= published[t]
    /\ \A x \in messages[t] :
         /\ x.p \in Partitions /\ x.o \in Nat /\ x.n \in Nat
         /\ x.state \in States
         /\ x.owner \subseteq Holders
         /\ x.unseen \subseteq Nat
    /\ \A c \in copies[t] :
         /\ c.k < received[t] /\ c.w \in Holders /\ c.a \in Nat
         /\ [p |-> c.p, o |-> c.o] \in Places(t)
         /\ c.phase \in Phases /\ c.said \in BOOLEAN

(* A message executes once, however often it is delivered. *)
NoDoubleExecution ==
  \A t \in Tasks : executions[t] <= Cardinality(messages[t])

(* It was executed, or its member told how else it ended, or a copy is left *)
(* that may yet do it.                                                      *)
Accounted(t) ==
  \/ executions[t] > 0
  \/ closed[t]
  \/ \E c \in copies[t] : c.phase \in Unfinished

Is(t, state) == \E x \in messages[t] : x.state = state

AckedWasExecuted ==
  \A t \in Tasks : Is(t, "acked") => Accounted(t)

(* Not true where members die: what is delivered no more was executed.      *)
ParkedWasExecuted ==
  \A t \in Tasks : Is(t, "parked") => Accounted(t)

(* What the fence is for: no one else's word says of what a member has      *)
(* received last, and still works on, that it is done.                      *)
AckIsTheOwners ==
  \A t \in Tasks : \A c \in copies[t] : \A x \in messages[t] :
    At(x, c.p, c.o) /\ x.state = "acked" /\ x.owner = {c.w} /\ c.a + 1 = x.n /\ c.phase \in Unfinished => c.said

(* An invariant of ends: judged on complete runs alone. *)
NothingLost ==
  \A t \in Tasks : published[t] = 0 \/ executions[t] > 0 \/ closed[t] \/ Is(t, "parked")

----------------------------------------------------------- \* exploration

Bound ==
  \A t \in Tasks :
    /\ published[t] <= MaxPublished
    /\ received[t] <= MaxReceived
    /\ \A x \in messages[t] : x.n <= MaxReceived

(* No member says a word before its body is over. *)
LateAcks == \A t \in Tasks : \A c \in copies[t] : ~c.said

(* Nothing lies in a buffer: what is delivered is received. *)
Unbuffered == \A t \in Tasks : Unseen(t) = {}

(* A member says a word of what it has before it receives more, as the      *)
(* client demands.                                                          *)
OneEach == \A t \in Tasks : \A c, d \in copies[t] : c.w = d.w /\ ~c.said /\ ~d.said => c = d

(* An ACTION_CONSTRAINT: no body that has begun is cut off by a crash.      *)
NoBodyCutOff ==
  \A t \in Tasks : \A c \in copies[t] :
    c.phase \in {"begun", "passed"} => \E d \in copies'[t] : d.k = c.k

(* An ACTION_CONSTRAINT: the broker forgets nothing.                        *)
Remembers == \A t \in Tasks : \A x \in messages[t] : \E y \in messages'[t] : At(y, x.p, x.o) /\ y.n >= x.n

(* Nothing is ever delivered again. *)
NoRedelivery ==
  \A t \in Tasks : \A x \in messages[t] : x.n > 0 => x.state # "available"
==============================================================================
