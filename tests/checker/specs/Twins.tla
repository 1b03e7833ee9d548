---- MODULE Twins ----
\* Two counters that look alike. One state is reached by histories that broke different invariants, with more hidden
\* steps before an event or fewer after it, and from several initial states: what the other specs do rarely.
EXTENDS Integers
CONSTANT Starts
VARIABLES a, b, open
vars == <<a, b, open>>

Init == a \in Starts /\ b = 0 /\ open = FALSE

Up(x) ==
  /\ IF x = "a" THEN a < 3 /\ a' = a + 1 /\ b' = b
                ELSE b < 3 /\ b' = b + 1 /\ a' = a
  /\ open' = open

Down(x) ==
  /\ IF x = "a" THEN a > 0 /\ a' = a - 1 /\ b' = b
                ELSE b > 0 /\ b' = b - 1 /\ a' = a
  /\ open' = open

Swap == a' = b /\ b' = a /\ open' = open

Toggle == open' = ~open /\ UNCHANGED <<a, b>>

Jump == open /\ a' = 1 /\ b' = 1 /\ open' = open

Apart(d) == a - b = d /\ UNCHANGED vars

Next ==
  \/ \E x \in {"a", "b"} : Up(x) \/ Down(x)
  \/ Swap \/ Toggle \/ Jump
  \/ \E d \in -3..3 : Apart(d)
Spec == Init /\ [][Next]_vars

LowA == a < 2
LowB == b < 2
Near == a - b \in -1..1
====
