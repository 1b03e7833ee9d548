---- MODULE Shelf ----
\* A queue that falls apart by task: nothing couples two of them, so that a run may be replayed task by task.
EXTENDS Naturals
CONSTANT Tasks
VARIABLES place, runs
vars == <<place, runs>>

Init == place = [t \in Tasks |-> "away"] /\ runs = [t \in Tasks |-> 0]

Publish(t) == place[t] = "away" /\ place' = [place EXCEPT ![t] = "ready"] /\ UNCHANGED runs
Pickup(t) == place[t] = "ready" /\ place' = [place EXCEPT ![t] = "busy"] /\ UNCHANGED runs
Timeout(t) == place[t] = "busy" /\ place' = [place EXCEPT ![t] = "ready"] /\ UNCHANGED runs
Ack(t) == place[t] = "busy" /\ place' = [place EXCEPT ![t] = "away"] /\ UNCHANGED runs

Execute(t, n) ==
  /\ place[t] = "busy" /\ runs[t] + n < 4
  /\ runs' = [runs EXCEPT ![t] = @ + n]
  /\ UNCHANGED place

Undo(t) ==
  /\ runs[t] > 0
  /\ runs' = [runs EXCEPT ![t] = @ - 1]
  /\ UNCHANGED place

Next ==
  \E t \in Tasks :
    \/ Publish(t) \/ Pickup(t) \/ Timeout(t) \/ Ack(t) \/ Undo(t)
    \/ \E n \in 1..2 : Execute(t, n)
Spec == Init /\ [][Next]_vars

Once == \A t \in Tasks : runs[t] <= 1
Fresh == \A t \in Tasks : place[t] = "ready" => runs[t] = 0
====
