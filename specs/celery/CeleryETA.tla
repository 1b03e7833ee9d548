------------------------------ MODULE CeleryETA ------------------------------
(***************************************************************************)
(* The model that the project began with: Celery on Redis, tasks with an   *)
(* ETA, a visibility timeout. It is kept for its state counts. It is NOT   *)
(* what real runs are replayed against: a worker's copy goes away at the   *)
(* timeout here, and a task may execute again while it is active, so that  *)
(* the invariant breaks without any timeout. CeleryRedis has copies.       *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  MaxTasks,    \* publishing goes on while fewer tasks than this are known
  Idempotent   \* TRUE: a task executes only while its execution count is 0

VARIABLES
  tasks,       \* the ids that were ever published
  readySet,    \* the ids that wait in the queue
  activeSet,   \* the ids that a worker has picked up
  execCount    \* how often each id was executed

vars == <<tasks, readySet, activeSet, execCount>>

Ids == 0..MaxTasks

Init ==
  /\ tasks = {}
  /\ readySet = {}
  /\ activeSet = {}
  /\ execCount = [id \in Ids |-> 0]

PublishTask ==
  \E id \in Ids :
    /\ Cardinality(tasks) < MaxTasks
    /\ id \notin tasks
    /\ tasks' = tasks \union {id}
    /\ readySet' = readySet \union {id}
    /\ UNCHANGED <<activeSet, execCount>>

PickupTask ==
  \E id \in readySet :
    /\ readySet' = readySet \ {id}
    /\ activeSet' = activeSet \union {id}
    /\ UNCHANGED <<tasks, execCount>>

ExecuteTask ==
  \E id \in activeSet :
    /\ Idempotent => execCount[id] = 0
    /\ execCount' = [execCount EXCEPT ![id] = @ + 1]
    /\ UNCHANGED <<tasks, readySet, activeSet>>

AckWithoutExecute ==
  \E id \in activeSet :
    /\ Idempotent
    /\ execCount[id] > 0
    /\ activeSet' = activeSet \ {id}
    /\ UNCHANGED <<tasks, readySet, execCount>>

AckTask ==
  \E id \in activeSet :
    /\ activeSet' = activeSet \ {id}
    /\ UNCHANGED <<tasks, readySet, execCount>>

VisTimeoutExpired ==
  \E id \in activeSet :
    /\ activeSet' = activeSet \ {id}
    /\ readySet' = readySet \union {id}
    /\ UNCHANGED <<tasks, execCount>>

Next ==
  \/ PublishTask
  \/ PickupTask
  \/ ExecuteTask
  \/ AckWithoutExecute
  \/ AckTask
  \/ VisTimeoutExpired

Spec == Init /\ [][Next]_vars

TypeOK ==
  /\ tasks \subseteq Ids
  /\ readySet \subseteq tasks
  /\ activeSet \subseteq tasks
  /\ \A id \in Ids : execCount[id] \in Nat

InvariantNoDoubleExecution == \A id \in Ids : execCount[id] <= 1
==============================================================================
