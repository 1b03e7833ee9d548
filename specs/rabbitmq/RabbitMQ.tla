------------------------------ MODULE RabbitMQ ------------------------------
(***************************************************************************)
(* RabbitMQ as it is, with acknowledgements: what real runs are replayed   *)
(* against. README.md beside this file says in words what is modelled and  *)
(* what is not.                                                            *)
(*                                                                         *)
(* A DELIVERY is known by its connection n, its channel c and its delivery *)
(* tag d. An ack is said of these: it settles that delivery and no other.  *)
(* When the broker closes a channel - because an ack did not come in time  *)
(* (consumer_timeout), because of an error, or with its connection - it    *)
(* puts all messages back that are unacked on it, at once, and leaves the  *)
(* workers' copies alone: they go on, and what they say afterwards reaches *)
(* no one. A worker learns of the close later, if at all.                  *)
(*                                                                         *)
(* Every variable is a function over Tasks, and every action touches one   *)
(* task, or all of them alike, so that the model falls apart by task. No   *)
(* guard bounds a count; Bound, a CONSTRAINT, is for exploration alone.    *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Tasks,         \* the message ids
  Workers,       \* the workers' names; {} where no log line names one
  Connections,   \* the connections' names; {} likewise
  Channels,      \* the channels' names within their connections; {} likewise.
                 \* A number that is opened again has another name: 1, 1.2
  Tags,          \* the delivery tags; {} likewise
  Guard,         \* "none" | "checkThenInsert" | "atomicClaim"
  MaxPublished,  \* Bound: messages of one id
  MaxDeliveries  \* Bound: deliveries of an id that workers hold at once

ASSUME Guard \in {"none", "checkThenInsert", "atomicClaim"}

VARIABLES
  published,     \* how often the id was published
  fresh,         \* how many of its messages wait that no one was ever given
  returned,      \* how many wait that were put back: they say `redelivered`
  flagged,       \* whether one ever was put back
  unseen,        \* first deliveries that were put back before a worker's own
                 \* code saw them, and that it may yet see
  deliveries,    \* what workers received, and are not done with
  shut,          \* channels <<n, c>> and connections <<n>> that are closed
  said,          \* words that settled a delivery, if the broker heard them
  acked,         \* how many of the messages an ack has settled
  rejected,      \* how many were rejected, and are gone
  executions,    \* rows of the id in the database
  claimed,       \* whether the guard's table has a claim for it
  failed         \* whether a worker told that a body of it raised

vars == <<published, fresh, returned, flagged, unseen, deliveries, shut, said,
          acked, rejected, executions, claimed, failed>>

queue == <<fresh, returned, flagged, unseen>>
settled == <<said, acked, rejected>>
database == <<executions, claimed>>

(* held: received, its body not begun. begun: the body runs. passed, found: *)
(* the guard let it go on, or told it that the work is done. executed: its  *)
(* effect is durable. skipped: it said that there is nothing to do. done:   *)
(* the body is over, the ack is still due.                                  *)
Phases == {"held", "begun", "passed", "found", "executed", "skipped", "done"}
Unfinished == {"held", "begun", "passed"}

(* What the broker knows of a delivery. out: it waits for the worker's      *)
(* word. back: it has put the message back and hears no word. gone:         *)
(* likewise, and the worker knows. settled: it has the word.                *)
Entries == {"out", "back", "gone", "settled"}
Out(set) == {x \in set : x.entry = "out"}

(* Where logs do not name channels, that one is closed says nothing of the  *)
(* next delivery.                                                           *)
Shut(t, n, c) ==
  Connections # {} /\ Channels # {} /\ {<<n>>, <<n, c>>} \intersect shut[t] # {}

(* What no log line names was there all the same.                           *)
Holders == IF Workers = {} THEN {"somebody"} ELSE Workers
Links == IF Connections = {} THEN {"somewhere"} ELSE Connections
Lanes == IF Channels = {} THEN {"some"} ELSE Channels

On(set, n, c) == {x \in set : x.n = n /\ x.c = c}
Over(set, n) == {x \in set : x.n = n}
Of(t, w, n, c, d) == {x \in deliveries[t] : x.w = w /\ x.n = n /\ x.c = c /\ x.d = d}

(* Where no log line has tags, those of a channel are counted by message.   *)
Greatest(set) == IF set = {} THEN 0 ELSE CHOOSE x \in set : \A y \in set : y <= x
NewTags(t, n, c) ==
  IF Tags = {}
    THEN {1 + Greatest({x.d : x \in On(deliveries[t], n, c) \union On(said[t], n, c)})}
    ELSE Tags

Ws(t) == {x.w : x \in deliveries[t]}
Ns(t) == {x.n : x \in deliveries[t]}
Cs(t) == {x.c : x \in deliveries[t]}
Ds(t) == {x.d : x \in deliveries[t]}

Become(set, x, y) == (set \ {x}) \union {y}
Move(set, x, phase) == Become(set, x, [x EXCEPT !.phase = phase])

(* The body is over: the copy stays for the sake of its ack, if that is due *)
Finish(set, x) == IF x.entry = "settled" THEN set \ {x} ELSE Move(set, x, "done")

(* The word is said: the copy stays while its body goes on.                 *)
Say(set, x) ==
  IF x.phase = "done" THEN set \ {x} ELSE Become(set, x, [x EXCEPT !.entry = "settled"])

(* What is out on closed channels is put back; those who know say no more.  *)
PutBack(set, closed) ==
  {IF x \in closed /\ x.entry = "out" THEN [x EXCEPT !.entry = "back"] ELSE x : x \in set}
CutOff(set, closed) ==
  {IF x \in closed /\ x.entry # "settled" THEN [x EXCEPT !.entry = "gone"] ELSE x : x \in set}

------------------------------------------------------------- \* a message

Init ==
  /\ published = [t \in Tasks |-> 0]
  /\ fresh = [t \in Tasks |-> 0]
  /\ returned = [t \in Tasks |-> 0]
  /\ flagged = [t \in Tasks |-> FALSE]
  /\ unseen = [t \in Tasks |-> 0]
  /\ deliveries = [t \in Tasks |-> {}]
  /\ shut = [t \in Tasks |-> {}]
  /\ said = [t \in Tasks |-> {}]
  /\ acked = [t \in Tasks |-> 0]
  /\ rejected = [t \in Tasks |-> 0]
  /\ executions = [t \in Tasks |-> 0]
  /\ claimed = [t \in Tasks |-> FALSE]
  /\ failed = [t \in Tasks |-> FALSE]

Publish(t) ==
  /\ published[t] = 0
  /\ published' = [published EXCEPT ![t] = 1]
  /\ fresh' = [fresh EXCEPT ![t] = 1]
  /\ UNCHANGED <<returned, flagged, unseen, deliveries, shut, settled, database, failed>>

(* The id is published again: by someone who wants it done once more, or    *)
(* whose confirm was lost. It buys one more execution.                      *)
Republish(t) ==
  /\ published[t] > 0
  /\ published' = [published EXCEPT ![t] = @ + 1]
  /\ fresh' = [fresh EXCEPT ![t] = @ + 1]
  /\ UNCHANGED <<returned, flagged, unseen, deliveries, shut, settled, database, failed>>

(* A delivery reached the worker's own code. r: its flag `redelivered`.     *)
(* Either it is out now. Or it lay in a buffer while its channel was        *)
(* closed, and its message is back already, for others to take: without the *)
(* flag that is the message's first, of which there is one; with it there   *)
(* may be any number, and the channel must be known as closed.              *)
Pickup(t, w, n, c, d, r) ==
  /\ \A x \in On(deliveries[t], n, c) : x.d # d
  /\ \/ /\ ~Shut(t, n, c)
        /\ IF r THEN returned[t] > 0 ELSE fresh[t] > 0
        /\ fresh' = [fresh EXCEPT ![t] = IF r THEN @ ELSE @ - 1]
        /\ returned' = [returned EXCEPT ![t] = IF r THEN @ - 1 ELSE @]
        /\ deliveries' = [deliveries EXCEPT ![t] = @ \union
             {[w |-> w, n |-> n, c |-> c, d |-> d, phase |-> "held", entry |-> "out"]}]
        /\ UNCHANGED <<unseen, shut>>
     \/ /\ IF r THEN flagged[t] /\ Shut(t, n, c) ELSE unseen[t] > 0
        /\ unseen' = [unseen EXCEPT ![t] = IF r THEN @ ELSE @ - 1]
        /\ shut' = [shut EXCEPT ![t] = @ \union {<<n, c>>}]
        /\ deliveries' = [deliveries EXCEPT ![t] = @ \union
             {[w |-> w, n |-> n, c |-> c, d |-> d, phase |-> "held", entry |-> "back"]}]
        /\ UNCHANGED <<fresh, returned>>
  /\ UNCHANGED <<published, flagged, settled, database, failed>>

(* A first delivery was put back before a worker's own code saw it.         *)
Return(t) ==
  /\ fresh[t] > 0
  /\ fresh' = [fresh EXCEPT ![t] = @ - 1]
  /\ returned' = [returned EXCEPT ![t] = @ + 1]
  /\ flagged' = [flagged EXCEPT ![t] = TRUE]
  /\ unseen' = [unseen EXCEPT ![t] = @ + 1]
  /\ UNCHANGED <<published, deliveries, shut, settled, database, failed>>

---------------------------------------------------------------- \* a body

Start(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.phase = "held"
    /\ deliveries' = [deliveries EXCEPT ![t] = Move(@, x, "begun")]
    /\ UNCHANGED <<published, queue, shut, settled, database, failed>>

Known(t) == IF Guard = "atomicClaim" THEN claimed[t] ELSE executions[t] > 0

(* The body asks its guard. "checkThenInsert" looks for a row, and another  *)
(* may look before this one's is there. "atomicClaim" takes the claim if it *)
(* is free, in one step.                                                    *)
Check(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ Guard # "none"
    /\ x.phase = "begun"
    /\ deliveries' = [deliveries EXCEPT ![t] =
         Move(@, x, IF Known(t) THEN "found" ELSE "passed")]
    /\ claimed' = [claimed EXCEPT ![t] = @ \/ Guard = "atomicClaim"]
    /\ UNCHANGED <<published, queue, shut, settled, executions, failed>>

MayExecute == IF Guard = "none" THEN "begun" ELSE "passed"

(* The effect became durable. *)
Execute(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.phase = MayExecute
    /\ deliveries' = [deliveries EXCEPT ![t] = Move(@, x, "executed")]
    /\ executions' = [executions EXCEPT ![t] = @ + 1]
    /\ UNCHANGED <<published, queue, shut, settled, claimed, failed>>

(* The transaction failed after all, and a claim made in it goes with it.   *)
Undo(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.phase = "executed"
    /\ deliveries' = [deliveries EXCEPT ![t] =
         Move(@, x, IF Guard = "checkThenInsert" THEN "passed" ELSE "begun")]
    /\ executions' = [executions EXCEPT ![t] = @ - 1]
    /\ claimed' = [claimed EXCEPT ![t] = FALSE]
    /\ UNCHANGED <<published, queue, shut, settled, failed>>

Skip(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.phase = "found"
    /\ deliveries' = [deliveries EXCEPT ![t] = Move(@, x, "skipped")]
    /\ UNCHANGED <<published, queue, shut, settled, database, failed>>

Done(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.phase \in {"executed", "skipped"}
    /\ deliveries' = [deliveries EXCEPT ![t] = Finish(@, x)]
    /\ UNCHANGED <<published, queue, shut, settled, database, failed>>

(* The body raised. *)
Fail(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.phase \in {"begun", "passed", "found", "executed", "skipped"}
    /\ deliveries' = [deliveries EXCEPT ![t] = Finish(@, x)]
    /\ failed' = [failed EXCEPT ![t] = TRUE]
    /\ UNCHANGED <<published, queue, shut, settled, database>>

---------------------------------------------------------------- \* settling

Word(x, word) == [n |-> x.n, c |-> x.c, d |-> x.d, word |-> word]
Heard(x, word) == IF x.entry = "out" THEN {Word(x, word)} ELSE {}

(* Before the body or after it, as the worker likes. Of a message that was  *)
(* put back it does nothing, and is told all the same, as long as the       *)
(* worker does not know that the channel is closed.                         *)
Ack(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.entry \in {"out", "back"}
    /\ deliveries' = [deliveries EXCEPT ![t] = Say(@, x)]
    /\ acked' = [acked EXCEPT ![t] = IF x.entry = "out" THEN @ + 1 ELSE @]
    /\ said' = [said EXCEPT ![t] = @ \union Heard(x, "ack")]
    /\ UNCHANGED <<published, queue, shut, rejected, database, failed>>

(* An ack with multiple=True: all tags of the channel up to d.              *)
Told(set, n, c, d) == {x \in On(set, n, c) : x.d <= d /\ x.entry \in {"out", "back"}}
SayAll(set, told) ==
  (set \ told) \union {[x EXCEPT !.entry = "settled"] : x \in {y \in told : y.phase # "done"}}

AckAll(n, c, d) ==
  /\ n \in Links
  /\ deliveries' = [t \in Tasks |-> SayAll(deliveries[t], Told(deliveries[t], n, c, d))]
  /\ acked' = [t \in Tasks |->
       acked[t] + Cardinality({x \in Told(deliveries[t], n, c, d) : x.entry = "out"})]
  /\ said' = [t \in Tasks |->
       said[t] \union UNION {Heard(x, "ack") : x \in Told(deliveries[t], n, c, d)}]
  /\ UNCHANGED <<published, queue, shut, rejected, database, failed>>

(* The worker could not say its word, since the channel is closed: what was *)
(* out is put back, unless it broke when the broker had heard the word.     *)
AckFail(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.entry # "settled"
    /\ deliveries' = [deliveries EXCEPT ![t] = Say(@, x)]
    /\ \/ /\ returned' = [returned EXCEPT ![t] = IF x.entry = "out" THEN @ + 1 ELSE @]
          /\ flagged' = [flagged EXCEPT ![t] = @ \/ x.entry = "out"]
          /\ UNCHANGED acked
       \/ /\ x.entry = "out"
          /\ acked' = [acked EXCEPT ![t] = @ + 1]
          /\ UNCHANGED <<returned, flagged>>
    /\ UNCHANGED <<published, fresh, unseen, shut, said, rejected, database, failed>>

(* nack or reject with requeue=True: back into the queue, at once.          *)
Nack(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.entry \in {"out", "back"}
    /\ deliveries' = [deliveries EXCEPT ![t] = Say(@, x)]
    /\ returned' = [returned EXCEPT ![t] = IF x.entry = "out" THEN @ + 1 ELSE @]
    /\ flagged' = [flagged EXCEPT ![t] = TRUE]
    /\ UNCHANGED <<published, fresh, unseen, shut, settled, database, failed>>

(* nack or reject with requeue=False: gone, or to the dead letters.         *)
Reject(t, w, n, c, d) ==
  \E x \in Of(t, w, n, c, d) :
    /\ x.entry \in {"out", "back"}
    /\ deliveries' = [deliveries EXCEPT ![t] = Say(@, x)]
    /\ rejected' = [rejected EXCEPT ![t] = IF x.entry = "out" THEN @ + 1 ELSE @]
    /\ said' = [said EXCEPT ![t] = @ \union Heard(x, "reject")]
    /\ UNCHANGED <<published, queue, shut, acked, database, failed>>

(* The word was on its way when the channel was closed: it was not heard,   *)
(* and the message is put back with the others.                             *)
WordLost(t, n, c, d) ==
  \E s \in On(said[t], n, c) :
    /\ s.d = d
    /\ said' = [said EXCEPT ![t] = @ \ {s}]
    /\ acked' = [acked EXCEPT ![t] = IF s.word = "ack" THEN @ - 1 ELSE @]
    /\ rejected' = [rejected EXCEPT ![t] = IF s.word = "reject" THEN @ - 1 ELSE @]
    /\ returned' = [returned EXCEPT ![t] = @ + 1]
    /\ flagged' = [flagged EXCEPT ![t] = TRUE]
    /\ shut' = [shut EXCEPT ![t] = @ \union {<<n, c>>}]
    /\ UNCHANGED <<published, fresh, unseen, deliveries, database, failed>>

------------------------------------------------ \* channels and connections

(* The broker closes a channel: all that is out there is put back at once.  *)
ChannelClose(n, c) ==
  /\ deliveries' = [t \in Tasks |-> PutBack(deliveries[t], On(deliveries[t], n, c))]
  /\ returned' = [t \in Tasks |-> returned[t] + Cardinality(Out(On(deliveries[t], n, c)))]
  /\ flagged' = [t \in Tasks |-> flagged[t] \/ Out(On(deliveries[t], n, c)) # {}]
  /\ shut' = [t \in Tasks |-> shut[t] \union {<<n, c>>}]
  /\ UNCHANGED <<published, fresh, unseen, settled, database, failed>>

(* It closes a connection, and with it all its channels.                    *)
ConnClose(n) ==
  /\ deliveries' = [t \in Tasks |-> PutBack(deliveries[t], Over(deliveries[t], n))]
  /\ returned' = [t \in Tasks |-> returned[t] + Cardinality(Out(Over(deliveries[t], n)))]
  /\ flagged' = [t \in Tasks |-> flagged[t] \/ Out(Over(deliveries[t], n)) # {}]
  /\ shut' = [t \in Tasks |-> shut[t] \union {<<n>>}]
  /\ UNCHANGED <<published, fresh, unseen, settled, database, failed>>

(* It says why it is about to close one: consumer_timeout; an error.        *)
AckTimeout(n, c) == n \in Links /\ c \in Lanes /\ UNCHANGED vars
ConnError(n) == n \in Links /\ UNCHANGED vars

(* What ChannelClose is to one message, where no one logs it.               *)
Requeue(t, n, c) ==
  /\ Out(On(deliveries[t], n, c)) # {}
  /\ deliveries' = [deliveries EXCEPT ![t] = PutBack(@, On(@, n, c))]
  /\ returned' = [returned EXCEPT ![t] = @ + Cardinality(Out(On(deliveries[t], n, c)))]
  /\ flagged' = [flagged EXCEPT ![t] = TRUE]
  /\ shut' = [shut EXCEPT ![t] = @ \union {<<n, c>>}]
  /\ UNCHANGED <<published, fresh, unseen, settled, database, failed>>

(* A worker has learned that a channel, or its connection, is closed, or    *)
(* closes it itself. Bodies go on. What is out there is put back now: the   *)
(* broker may be later to notice, but it will give it to no one before.     *)
ChannelLost(w, n, c) ==
  /\ deliveries' = [t \in Tasks |-> CutOff(deliveries[t], On(deliveries[t], n, c))]
  /\ returned' = [t \in Tasks |-> returned[t] + Cardinality(Out(On(deliveries[t], n, c)))]
  /\ flagged' = [t \in Tasks |-> flagged[t] \/ Out(On(deliveries[t], n, c)) # {}]
  /\ shut' = [t \in Tasks |-> shut[t] \union {<<n, c>>}]
  /\ UNCHANGED <<published, fresh, unseen, settled, database, failed>>

ConnLost(w, n) ==
  /\ deliveries' = [t \in Tasks |-> CutOff(deliveries[t], Over(deliveries[t], n))]
  /\ returned' = [t \in Tasks |-> returned[t] + Cardinality(Out(Over(deliveries[t], n)))]
  /\ flagged' = [t \in Tasks |-> flagged[t] \/ Out(Over(deliveries[t], n)) # {}]
  /\ shut' = [t \in Tasks |-> shut[t] \union {<<n>>}]
  /\ UNCHANGED <<published, fresh, unseen, settled, database, failed>>

(* A worker dies with all that it holds, and its connections with it.       *)
Crash(w) ==
  /\ deliveries' = [t \in Tasks |-> {x \in deliveries[t] : x.w # w}]
  /\ returned' = [t \in Tasks |-> returned[t] + Cardinality({x \in Out(deliveries[t]) : x.w = w})]
  /\ flagged' = [t \in Tasks |-> flagged[t] \/ \E x \in Out(deliveries[t]) : x.w = w]
  /\ UNCHANGED <<published, fresh, unseen, shut, settled, database, failed>>

----------------------------------------------------------------------------

Next ==
  \/ \E t \in Tasks : Publish(t)
  \/ \E t \in Tasks : \E w \in Holders, n \in Links, c \in Lanes :
       \E d \in NewTags(t, n, c), r \in BOOLEAN : Pickup(t, w, n, c, d, r)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Start(t, w, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Check(t, w, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Execute(t, w, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Skip(t, w, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Done(t, w, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Ack(t, w, n, c, d)
  \/ \E t \in Tasks : \E n \in Ns(t), c \in Cs(t) : Requeue(t, n, c)
  \/ \E t \in Tasks : \E n \in {s.n : s \in said[t]}, c \in {s.c : s \in said[t]}, d \in {s.d : s \in said[t]} :
       WordLost(t, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Undo(t, w, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Fail(t, w, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : AckFail(t, w, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Nack(t, w, n, c, d)
  \/ \E t \in Tasks : \E w \in Ws(t), n \in Ns(t), c \in Cs(t), d \in Ds(t) : Reject(t, w, n, c, d)
  \/ \E t \in Tasks : Return(t)
  \/ \E t \in Tasks : Republish(t)
  \/ \E n \in Links, c \in Lanes, d \in Tags : AckAll(n, c, d)
  \/ \E n \in Links, c \in Lanes : AckTimeout(n, c)
  \/ \E n \in Links, c \in Lanes : ChannelClose(n, c)
  \/ \E n \in Links : ConnError(n)
  \/ \E n \in Links : ConnClose(n)
  \/ \E w \in Holders, n \in Links, c \in Lanes : ChannelLost(w, n, c)
  \/ \E w \in Holders, n \in Links : ConnLost(w, n)
  \/ \E w \in Holders : Crash(w)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------ \* invariants

TypeOK ==
  \A t \in Tasks :
    /\ {published[t], fresh[t], returned[t], unseen[t], acked[t], rejected[t], executions[t]} \subseteq Nat
    /\ {flagged[t], claimed[t], failed[t]} \subseteq BOOLEAN
    /\ \A x \in deliveries[t] :
         /\ x.w \in Holders /\ x.n \in Links /\ x.c \in Lanes /\ x.d \in Nat
         /\ x.phase \in Phases
         /\ x.entry \in Entries
         /\ Cardinality(Of(t, x.w, x.n, x.c, x.d)) = 1

(* The broker loses no message and doubles none: it waits, or is out once,  *)
(* or is settled.                                                           *)
Conserved ==
  \A t \in Tasks :
    published[t] = fresh[t] + returned[t] + Cardinality(Out(deliveries[t])) + acked[t] + rejected[t]

(* A message executes once, however often it is delivered.                  *)
NoDoubleExecution ==
  \A t \in Tasks : executions[t] <= published[t]

(* What was acked was executed, or a worker told that its body raised, or a *)
(* copy is there that may yet do either.                                    *)
AckedWasExecuted ==
  \A t \in Tasks :
    acked[t] > 0 =>
      \/ executions[t] > 0
      \/ failed[t]
      \/ \E x \in deliveries[t] : x.phase \in Unfinished

(* Who receives an id without the flag `redelivered` is the first to do so: *)
(* true as long as no one publishes an id twice.                            *)
FlagTells ==
  \A t \in Tasks : published[t] - fresh[t] <= 1

(* Not true: no two workers work on one message at the same time.           *)
OneAtWork ==
  \A t \in Tasks :
    Cardinality({x \in deliveries[t] : x.phase \in {"begun", "passed", "found", "executed"}}) <= 1

(* An invariant of ends: judged on complete runs alone. *)
NothingLost ==
  \A t \in Tasks : published[t] = 0 \/ executions[t] > 0 \/ failed[t] \/ rejected[t] > 0

----------------------------------------------------------- \* exploration

(* Each worker has one connection, named like it, with one channel.         *)
Bound ==
  \A t \in Tasks :
    /\ published[t] <= MaxPublished
    /\ Cardinality(deliveries[t]) <= MaxDeliveries
    /\ \A x \in deliveries[t] : x.w = x.n /\ x.d <= MaxPublished
    /\ \A s \in shut[t] : Len(s) = 2

(* An ACTION_CONSTRAINT: of channels, those are closed on which there is    *)
(* something.                                                               *)
ClosedInUse == shut' # shut => deliveries' # deliveries \/ said' # said

(* An ACTION_CONSTRAINT: no delivery is in a buffer, and no word on its way *)
(* while a channel is closed.                                               *)
NothingInFlight ==
  \A t \in Tasks :
    /\ unseen[t]' = 0
    /\ acked[t]' >= acked[t]
    /\ Cardinality(deliveries[t]') > Cardinality(deliveries[t]) => fresh[t]' + returned[t]' < fresh[t] + returned[t]

(* Bodies return, and messages are acked or put back.                       *)
Plain == \A t \in Tasks : ~failed[t] /\ rejected[t] = 0

(* No worker acks before its body is over. *)
LateAcks ==
  \A t \in Tasks : \A x \in deliveries[t] : x.entry = "settled" => x.phase \notin Unfinished

(* No body that has begun ends without its effect: an ACTION_CONSTRAINT.    *)
NoBodyCutOff ==
  \A t \in Tasks :
    LET In(set) == Cardinality({x \in set : x.phase \in {"begun", "passed"}})
    IN \/ In(deliveries[t])' >= In(deliveries[t])
       \/ executions[t]' # executions[t]
       \/ failed[t]' # failed[t]
       \/ \E x \in deliveries[t]' : x.phase = "found" /\ x \notin deliveries[t]

(* Nothing is ever put back. *)
NoRedelivery == \A t \in Tasks : ~flagged[t]
=============================================================================
