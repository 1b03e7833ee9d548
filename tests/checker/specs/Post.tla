---- MODULE Post ----
\* A queue that falls apart by task, but for its broker: that stops and boots, which is a step of every task's story.
EXTENDS Naturals
CONSTANT Tasks
VARIABLES up, boots, place, runs

Init ==
  /\ up = TRUE
  /\ boots = 0
  /\ place = [t \in Tasks |-> "away"]
  /\ runs = [t \in Tasks |-> 0]

Stop == up /\ up' = FALSE /\ UNCHANGED <<boots, place, runs>>
Boot == ~up /\ boots < 3 /\ up' = TRUE /\ boots' = boots + 1 /\ UNCHANGED <<place, runs>>

Move(t, from, to) ==
  /\ place[t] = from
  /\ place' = [place EXCEPT ![t] = to]
  /\ UNCHANGED <<up, boots, runs>>

Publish(t) == Move(t, "away", "ready")
Timeout(t) == Move(t, "busy", "ready")
Pickup(t) == up /\ Move(t, "ready", "busy")
Ack(t) == up /\ Move(t, "busy", "over")

Execute(t) ==
  /\ up /\ place[t] = "busy" /\ runs[t] < 3
  /\ runs' = [runs EXCEPT ![t] = @ + 1]
  /\ UNCHANGED <<up, boots, place>>

Next ==
  \/ Stop
  \/ Boot
  \/ \E t \in Tasks : Publish(t) \/ Pickup(t) \/ Execute(t) \/ Timeout(t) \/ Ack(t)
Spec == Init /\ [][Next]_<<up, boots, place, runs>>

Once == \A t \in Tasks : runs[t] <= 1
FewBoots == boots <= 1
Calm == \A t \in Tasks : up \/ boots = 0 \/ place[t] # "busy"
====
