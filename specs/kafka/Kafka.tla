--------------------------------- MODULE Kafka ---------------------------------
(***************************************************************************)
(* A consumer group of Kafka with offsets that the application commits, as *)
(* it is: what real runs are replayed against. README.md beside this file  *)
(* says in words what is modelled and what is not.                         *)
(*                                                                         *)
(* The group gives each PARTITION to one member, and remembers one offset  *)
(* of it, the committed one: all below it is done. There is no word about  *)
(* one message. A member that the group gave up - it did not poll for too  *)
(* long, or its session ran out - goes on with what it holds, and believes *)
(* that the partition is its own until it polls again: a ZOMBIE. The next  *)
(* owner begins where the committed offset stands, so that it receives     *)
(* what the zombie still works on. A commit of a zombie is refused.        *)
(*                                                                         *)
(* What is of one message is a function over Tasks; partitions, their      *)
(* owners and offsets are of the run, and only actions that are told of    *)
(* change them, so that the model falls apart by task. No guard bounds a   *)
(* count; Bound, a CONSTRAINT, is for exploration alone.                   *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Tasks,         \* what a message is known by: a header, its key, or its place
  Workers,       \* the members' names; {} where no log line names one
  Partitions,    \* the partitions of the topic
  Offsets,       \* the offsets at which messages stand
  Guard,         \* "none" | "checkThenInsert" | "atomicClaim"
  Fenced,        \* whether the group refuses the commits of a zombie: it does
  MaxPublished,  \* Bound: how often a task is published
  MaxReceived,   \* Bound: receipts of a task
  MaxGenerations \* Bound: how often a partition is given

ASSUME Guard \in {"none", "checkThenInsert", "atomicClaim"}
ASSUME Fenced \in BOOLEAN

VARIABLES
  published,     \* how often producers sent it
  messages,      \* where it stands, as far as members have received it: [p, o]
  given,         \* who has received it since the partition was given: [w, p, o]
  received,      \* how often it was received
  copies,        \* what members hold: a set, one copy a receipt
  executions,    \* its rows in the database
  claimed,       \* whether the guard's table has a claim for it
  closed,        \* whether a member told that it ended without an effect
  assigned,      \* of the run: what members believe to own: [w, p, from]
  owners,        \* of the run: whom the group gave a partition last: [p, w]
  committed,     \* of the run: the committed offsets: [p, o]
  generation,    \* of the run: how often a partition was given, as far as Bound asks
  sought         \* of the run: whether a member ever went back, or on, by itself

vars == <<published, messages, given, received, copies, executions, claimed, closed, assigned, owners, committed, generation, sought>>

log == <<published, messages, given, received>>
database == <<executions, claimed>>
group == <<assigned, owners, committed, generation, sought>>

(* held: received, its body not begun. begun: the body runs. passed, found: *)
(* the guard let it go on, or told it that the work is done. executed: its  *)
(* effect is durable. skipped: it said that there is nothing to do. A copy  *)
(* whose body is over is none any more: no word is due for it alone.        *)
Phases == {"held", "begun", "passed", "found", "executed", "skipped"}
Unfinished == {"held", "begun", "passed"}

(* Where no log line names a member, somebody received it all the same.     *)
Holders == IF Workers = {} THEN {"somebody"} ELSE Workers

Holding(t) == {c.w : c \in copies[t]}

Move(set, c, phase) == (set \ {c}) \union {[c EXCEPT !.phase = phase]}

Owns(w, p) == [p |-> p, w |-> w] \in owners

(* The offset from which the group gives out a partition; without one, all  *)
CommittedOf(p) == IF \E x \in committed : x.p = p THEN (CHOOSE x \in committed : x.p = p).o ELSE 0

Behind(m) == m.o < CommittedOf(m.p)

------------------------------------------------------------- \* a message

Init ==
  /\ published = [t \in Tasks |-> 0]
  /\ messages = [t \in Tasks |-> {}]
  /\ given = [t \in Tasks |-> {}]
  /\ received = [t \in Tasks |-> 0]
  /\ copies = [t \in Tasks |-> {}]
  /\ executions = [t \in Tasks |-> 0]
  /\ claimed = [t \in Tasks |-> FALSE]
  /\ closed = [t \in Tasks |-> FALSE]
  /\ assigned = {}
  /\ owners = {}
  /\ committed = {}
  /\ generation = 0
  /\ sought = FALSE

Publish(t) ==
  /\ published[t] = 0
  /\ published' = [published EXCEPT ![t] = 1]
  /\ UNCHANGED <<messages, given, received, copies, database, closed, group>>

(* One more message about the same: it stands at another offset, which      *)
(* shows when a member has it, and buys one more execution.                 *)
Republish(t) ==
  /\ published[t] > 0
  /\ published' = [published EXCEPT ![t] = @ + 1]
  /\ UNCHANGED <<messages, given, received, copies, database, closed, group>>

(* A member received it: once in each time that the partition is its own,   *)
(* and never from before where that began.                                  *)
Pickup(t, w, p, o) ==
  LET m == [p |-> p, o |-> o]
  IN
  /\ m \in messages[t] \/ Cardinality(messages[t]) < published[t]
  /\ \E x \in assigned : x.w = w /\ x.p = p /\ x.from <= o
  /\ [w |-> w, p |-> p, o |-> o] \notin given[t]
  /\ messages' = [messages EXCEPT ![t] = @ \union {m}]
  /\ given' = [given EXCEPT ![t] = @ \union {[w |-> w, p |-> p, o |-> o]}]
  /\ received' = [received EXCEPT ![t] = @ + 1]
  /\ copies' = [copies EXCEPT ![t] = @ \union {[w |-> w, m |-> m, n |-> received[t], phase |-> "held"]}]
  /\ UNCHANGED <<published, database, closed, group>>

---------------------------------------------------------------- \* a body

Start(t, w) ==
  \E c \in copies[t] :
    /\ c.w = w
    /\ c.phase = "held"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "begun")]
    /\ UNCHANGED <<log, database, closed, group>>

Known(t) == IF Guard = "atomicClaim" THEN claimed[t] ELSE executions[t] > 0

(* The body asks its guard. "checkThenInsert" looks for a row, and another  *)
(* may look before this one's is there. "atomicClaim" takes the claim if it *)
(* is free, in one step.                                                    *)
Check(t, w) ==
  \E c \in copies[t] :
    /\ c.w = w
    /\ Guard # "none"
    /\ c.phase = "begun"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, IF Known(t) THEN "found" ELSE "passed")]
    /\ claimed' = [claimed EXCEPT ![t] = @ \/ Guard = "atomicClaim"]
    /\ UNCHANGED <<log, executions, closed, group>>

MayExecute == IF Guard = "none" THEN "begun" ELSE "passed"

(* The effect became durable. *)
Execute(t, w) ==
  \E c \in copies[t] :
    /\ c.w = w
    /\ c.phase = MayExecute
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "executed")]
    /\ executions' = [executions EXCEPT ![t] = @ + 1]
    /\ UNCHANGED <<log, claimed, closed, group>>

(* The transaction failed after all, and a claim made in it goes with it.   *)
Undo(t, w) ==
  \E c \in copies[t] :
    /\ c.w = w
    /\ c.phase = "executed"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, IF Guard = "checkThenInsert" THEN "passed" ELSE "begun")]
    /\ executions' = [executions EXCEPT ![t] = @ - 1]
    /\ claimed' = [claimed EXCEPT ![t] = FALSE]
    /\ UNCHANGED <<log, closed, group>>

Skip(t, w) ==
  \E c \in copies[t] :
    /\ c.w = w
    /\ c.phase = "found"
    /\ copies' = [copies EXCEPT ![t] = Move(@, c, "skipped")]
    /\ UNCHANGED <<log, database, closed, group>>

Done(t, w) ==
  \E c \in copies[t] :
    /\ c.w = w
    /\ c.phase \in {"executed", "skipped"}
    /\ copies' = [copies EXCEPT ![t] = @ \ {c}]
    /\ UNCHANGED <<log, database, closed, group>>

(* The body raised. *)
Fail(t, w) ==
  \E c \in copies[t] :
    /\ c.w = w
    /\ c.phase # "held"
    /\ copies' = [copies EXCEPT ![t] = @ \ {c}]
    /\ closed' = [closed EXCEPT ![t] = TRUE]
    /\ UNCHANGED <<log, database, group>>

------------------------------------------------------------- \* the group

(* Forgets what w was given of p from an offset on: it comes again.         *)
Again(w, p, from) ==
  given' = [t \in Tasks |-> {x \in given[t] : x.w # w \/ x.p # p \/ x.o < from}]

(* The group gives a partition to a member, which begins at the committed   *)
(* offset. Who had it before may not know yet.                              *)
Assign(w, p) ==
  /\ assigned' = {x \in assigned : x.w # w \/ x.p # p} \union {[w |-> w, p |-> p, from |-> CommittedOf(p)]}
  /\ owners' = {x \in owners : x.p # p} \union {[p |-> p, w |-> w]}
  /\ Again(w, p, 0)
  /\ generation' = IF generation > MaxGenerations THEN generation ELSE generation + 1
  /\ UNCHANGED <<published, messages, received, copies, database, closed, committed, sought>>

(* The member learns that it gives a partition back; or, too late, that it  *)
(* was taken. It receives nothing more of it, and goes on with its bodies.  *)
Revoke(w, p) ==
  /\ assigned' = {x \in assigned : x.w # w \/ x.p # p}
  /\ UNCHANGED <<log, copies, database, closed, owners, committed, generation, sought>>

Lost(w, p) ==
  /\ assigned' = {x \in assigned : x.w # w \/ x.p # p}
  /\ UNCHANGED <<log, copies, database, closed, owners, committed, generation, sought>>

(* The group took a commit: all below the offset is done. It may go back.   *)
Commit(w, p, o) ==
  /\ Fenced => Owns(w, p)
  /\ committed' = {x \in committed : x.p # p} \union {[p |-> p, o |-> o]}
  /\ UNCHANGED <<log, copies, database, closed, assigned, owners, generation, sought>>

(* It refused one: the member is a zombie, or the coordinator moves.        *)
CommitFail(w, p, o) ==
  /\ w \in Holders
  /\ p \in Partitions
  /\ o \in Nat
  /\ UNCHANGED vars

(* The member goes back, or on, to an offset of what it believes to own.    *)
Seek(w, p, o) ==
  /\ \E x \in assigned : x.w = w /\ x.p = p
  /\ assigned' = {x \in assigned : x.w # w \/ x.p # p} \union {[w |-> w, p |-> p, from |-> o]}
  /\ Again(w, p, o)
  /\ sought' = TRUE
  /\ UNCHANGED <<published, messages, received, copies, database, closed, owners, committed, generation>>

(* A member dies with all that it holds, and says nothing more.             *)
Crash(w) ==
  /\ copies' = [t \in Tasks |-> {c \in copies[t] : c.w # w}]
  /\ assigned' = {x \in assigned : x.w # w}
  /\ owners' = {x \in owners : x.w # w}
  /\ UNCHANGED <<log, database, closed, committed, generation, sought>>

----------------------------------------------------------------------------

Next ==
  \/ \E t \in Tasks : Publish(t)
  \/ \E t \in Tasks : \E w \in Holders, p \in Partitions, o \in Offsets : Pickup(t, w, p, o)
  \/ \E t \in Tasks : \E w \in Holding(t) : Start(t, w)
  \/ \E t \in Tasks : \E w \in Holding(t) : Check(t, w)
  \/ \E t \in Tasks : \E w \in Holding(t) : Execute(t, w)
  \/ \E t \in Tasks : \E w \in Holding(t) : Skip(t, w)
  \/ \E t \in Tasks : \E w \in Holding(t) : Done(t, w)
  \/ \E t \in Tasks : \E w \in Holding(t) : Undo(t, w)
  \/ \E t \in Tasks : \E w \in Holding(t) : Fail(t, w)
  \/ \E t \in Tasks : Republish(t)
  \/ \E w \in Holders, p \in Partitions : Assign(w, p)
  \/ \E w \in Holders, p \in Partitions : Revoke(w, p)
  \/ \E w \in Holders, p \in Partitions : Lost(w, p)
  \/ \E w \in Holders, p \in Partitions, o \in Offsets : Commit(w, p, o)
  \/ \E w \in Holders, p \in Partitions, o \in Offsets : CommitFail(w, p, o)
  \/ \E w \in Holders, p \in Partitions, o \in Offsets : Seek(w, p, o)
  \/ \E w \in Holders : Crash(w)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------ \* invariants

TypeOK ==
  /\ \A t \in Tasks :
       /\ published[t] \in Nat /\ received[t] \in Nat /\ executions[t] \in Nat
       /\ {claimed[t], closed[t]} \subseteq BOOLEAN
       /\ Cardinality(messages[t]) <= published[t]
       /\ \A m \in messages[t] : m.p \in Partitions /\ m.o \in Nat
       /\ \A c \in copies[t] :
            c.m \in messages[t] /\ c.w \in Holders /\ c.n < received[t] /\ c.phase \in Phases
       /\ \A x \in given[t] : [p |-> x.p, o |-> x.o] \in messages[t]
  /\ \A x \in assigned : x.w \in Holders /\ x.p \in Partitions /\ x.from \in Nat
  /\ \A x \in owners : x.w \in Holders /\ x.p \in Partitions
  /\ \A x \in committed : x.p \in Partitions /\ x.o \in Nat
  /\ generation \in Nat
  /\ sought \in BOOLEAN

(* A message executes once, however often it is received. *)
NoDoubleExecution ==
  \A t \in Tasks : executions[t] <= Cardinality(messages[t])

(* It was executed, or its member told how else it ended, or a copy is left *)
(* that may yet do it.                                                      *)
Accounted(t) ==
  \/ executions[t] > 0
  \/ closed[t]
  \/ \E c \in copies[t] : c.phase \in Unfinished

(* What the committed offset says is done was done. *)
AckedWasExecuted ==
  \A t \in Tasks : \A m \in messages[t] : Behind(m) => Accounted(t)

(* What the fence is for: no one else's commit says of what the owner has   *)
(* received last, and still works on, that it is done. Not true of an owner *)
(* that went back by itself.                                                *)
CommitIsTheOwners ==
  \A t \in Tasks : \A c \in copies[t] :
    /\ ~sought
    /\ Owns(c.w, c.m.p)
    /\ [w |-> c.w, p |-> c.m.p, o |-> c.m.o] \in given[t]
    /\ c.n + 1 = received[t]
    /\ c.phase \in Unfinished
    => ~Behind(c.m)

(* An invariant of ends: judged on complete runs alone. *)
NothingLost ==
  \A t \in Tasks : published[t] = 0 \/ executions[t] > 0 \/ closed[t]

----------------------------------------------------------- \* exploration

(* A commit of nothing says no more than none. *)
Bound ==
  /\ \A t \in Tasks : published[t] <= MaxPublished /\ received[t] <= MaxReceived
  /\ generation <= MaxGenerations
  /\ \A x \in committed : x.o > 0

(* Nobody goes back, or on, by itself. *)
NoSeek == ~sought

(* An ACTION_CONSTRAINT: a member commits what it was given and is done     *)
(* with, while it believes that the partition is its own. Nothing that no   *)
(* one has received yet is committed.                                       *)
LateCommits ==
  \A t \in Tasks :
    /\ \A m \in messages'[t] \ messages[t] : ~Behind(m)
    /\ \A m \in messages[t] :
         ~Behind(m) /\ (\E x \in committed' : x.p = m.p /\ m.o < x.o) =>
           \E w \in Holders :
             /\ Fenced => Owns(w, m.p)
             /\ \E x \in assigned : x.w = w /\ x.p = m.p
             /\ [w |-> w, p |-> m.p, o |-> m.o] \in given[t]
             /\ \A c \in copies[t] : c.w # w \/ c.m # m

(* An ACTION_CONSTRAINT: no body that has begun is cut off by a crash.      *)
NoBodyCutOff ==
  \A t \in Tasks : \A c \in copies[t] :
    c.phase \in {"begun", "passed"} => \E d \in copies[t]' : d.n = c.n

(* An ACTION_CONSTRAINT: a partition is given once, and its owner lives.    *)
NoRebalance ==
  /\ owners \subseteq owners'
  /\ \A t \in Tasks : given[t] \subseteq given'[t]
================================================================================
