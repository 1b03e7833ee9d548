------------------------------ MODULE RaftLike ------------------------------
\* Raft after Ongaro's raft.tla, over a network that loses messages and delivers them more than once. A message that was
\* lost or repeated is logged by nobody: Drop and Duplicate are for a replay to hide.
\*
\* Otherwise than there: a message is one record in a set; a handler adopts a later term in the step that handles the
\* message; a candidate votes for itself at once. With Durable = FALSE a restart forgets the vote, and one term may have
\* two leaders.
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Server, Nil, Durable

VARIABLES
  messages,       \* those in flight
  sent,           \* all that ever were
  currentTerm, role, votedFor, log, commitIndex,
  votesGranted,   \* for a candidate: the servers that voted for it
  nextIndex,      \* for a leader: the next entry to send, by server
  matchIndex      \* for a leader: up to where a server's log is known to agree

network == <<messages, sent>>
leaderVars == <<nextIndex, matchIndex>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
LastTerm(entries) == IF entries = <<>> THEN 0 ELSE entries[Len(entries)].term
IsQuorum(servers) == 2 * Cardinality(servers) > Cardinality(Server)

Init ==
  /\ messages = {}
  /\ sent = {}
  /\ currentTerm = [i \in Server |-> 1]
  /\ role = [i \in Server |-> "follower"]
  /\ votedFor = [i \in Server |-> Nil]
  /\ log = [i \in Server |-> <<>>]
  /\ commitIndex = [i \in Server |-> 0]
  /\ votesGranted = [i \in Server |-> {}]
  /\ nextIndex = [i \in Server |-> [j \in Server |-> 1]]
  /\ matchIndex = [i \in Server |-> [j \in Server |-> 0]]

\* --- the network ---

Send(m) ==
  /\ messages' = messages \union {m}
  /\ sent' = sent \union {m}

Discard(m) ==
  /\ messages' = messages \ {m}
  /\ UNCHANGED sent

Reply(response, m) ==
  /\ messages' = (messages \ {m}) \union {response}
  /\ sent' = sent \union {response}

Drop(m) ==
  /\ Discard(m)
  /\ UNCHANGED <<currentTerm, role, votedFor, log, commitIndex, votesGranted, leaderVars>>

Duplicate(m) ==
  /\ messages' = messages \union {m}
  /\ UNCHANGED <<sent, currentTerm, role, votedFor, log, commitIndex, votesGranted, leaderVars>>

\* --- what a server does by itself ---

Restart(i) ==
  /\ role' = [role EXCEPT ![i] = "follower"]
  /\ votedFor' = IF Durable THEN votedFor ELSE [votedFor EXCEPT ![i] = Nil]
  /\ votesGranted' = [votesGranted EXCEPT ![i] = {}]
  /\ commitIndex' = [commitIndex EXCEPT ![i] = 0]
  /\ nextIndex' = [nextIndex EXCEPT ![i] = [j \in Server |-> 1]]
  /\ matchIndex' = [matchIndex EXCEPT ![i] = [j \in Server |-> 0]]
  /\ UNCHANGED <<network, currentTerm, log>>

Timeout(i) ==
  /\ role[i] \in {"follower", "candidate"}
  /\ role' = [role EXCEPT ![i] = "candidate"]
  /\ currentTerm' = [currentTerm EXCEPT ![i] = @ + 1]
  /\ votedFor' = [votedFor EXCEPT ![i] = i]
  /\ votesGranted' = [votesGranted EXCEPT ![i] = {i}]
  /\ UNCHANGED <<network, log, commitIndex, leaderVars>>

RequestVote(i, j) ==
  /\ i # j
  /\ role[i] = "candidate"
  /\ Send([mtype |-> "RequestVote", mterm |-> currentTerm[i], mlastLogTerm |-> LastTerm(log[i]),
           mlastLogIndex |-> Len(log[i]), msource |-> i, mdest |-> j])
  /\ UNCHANGED <<currentTerm, role, votedFor, log, commitIndex, votesGranted, leaderVars>>

BecomeLeader(i) ==
  /\ role[i] = "candidate"
  /\ IsQuorum(votesGranted[i])
  /\ role' = [role EXCEPT ![i] = "leader"]
  /\ nextIndex' = [nextIndex EXCEPT ![i] = [j \in Server |-> Len(log[i]) + 1]]
  /\ matchIndex' = [matchIndex EXCEPT ![i] = [j \in Server |-> 0]]
  /\ UNCHANGED <<network, currentTerm, votedFor, log, commitIndex, votesGranted>>

ClientRequest(i, v) ==
  /\ role[i] = "leader"
  /\ log' = [log EXCEPT ![i] = Append(@, [term |-> currentTerm[i], value |-> v])]
  /\ UNCHANGED <<network, currentTerm, role, votedFor, commitIndex, votesGranted, leaderVars>>

\* At most one entry at a time, as in raft.tla.
AppendEntries(i, j) ==
  LET prev == nextIndex[i][j] - 1
      last == Min(Len(log[i]), nextIndex[i][j])
  IN
  /\ i # j
  /\ role[i] = "leader"
  /\ Send([mtype |-> "AppendEntries", mterm |-> currentTerm[i], mprevLogIndex |-> prev,
           mprevLogTerm |-> IF prev > 0 THEN log[i][prev].term ELSE 0,
           mentries |-> SubSeq(log[i], nextIndex[i][j], last), mcommitIndex |-> Min(commitIndex[i], last),
           msource |-> i, mdest |-> j])
  /\ UNCHANGED <<currentTerm, role, votedFor, log, commitIndex, votesGranted, leaderVars>>

AdvanceCommitIndex(i) ==
  LET Agree(index) == {i} \union {k \in Server : matchIndex[i][k] >= index}
      agreed == {index \in (commitIndex[i] + 1) .. Len(log[i]) :
                   IsQuorum(Agree(index)) /\ log[i][index].term = currentTerm[i]}
  IN
  /\ role[i] = "leader"
  /\ agreed # {}
  /\ commitIndex' = [commitIndex EXCEPT ![i] = CHOOSE index \in agreed : \A other \in agreed : other <= index]
  /\ UNCHANGED <<network, currentTerm, role, votedFor, log, votesGranted, leaderVars>>

\* --- what a server does with a message ---

\* The term of a message that is later than the server's own makes it a follower of that term.
Term(i, m) == Max(currentTerm[i], m.mterm)
Vote(i, m) == IF m.mterm > currentTerm[i] THEN Nil ELSE votedFor[i]
Role(i, m) == IF m.mterm > currentTerm[i] THEN "follower" ELSE role[i]

HandleRequestVote(m) ==
  LET i == m.mdest
      j == m.msource
      upToDate == \/ m.mlastLogTerm > LastTerm(log[i])
                  \/ m.mlastLogTerm = LastTerm(log[i]) /\ m.mlastLogIndex >= Len(log[i])
      grant == m.mterm >= currentTerm[i] /\ upToDate /\ Vote(i, m) \in {Nil, j}
  IN
  /\ m.mtype = "RequestVote"
  /\ currentTerm' = [currentTerm EXCEPT ![i] = Term(i, m)]
  /\ role' = [role EXCEPT ![i] = Role(i, m)]
  /\ votedFor' = [votedFor EXCEPT ![i] = IF grant THEN j ELSE Vote(i, m)]
  /\ Reply([mtype |-> "RequestVoteReply", mterm |-> Term(i, m), mvoteGranted |-> grant, msource |-> i, mdest |-> j], m)
  /\ UNCHANGED <<log, commitIndex, votesGranted, leaderVars>>

HandleRequestVoteReply(m) ==
  LET i == m.mdest
      counts == m.mterm = currentTerm[i] /\ role[i] = "candidate" /\ m.mvoteGranted
  IN
  /\ m.mtype = "RequestVoteReply"
  /\ currentTerm' = [currentTerm EXCEPT ![i] = Term(i, m)]
  /\ role' = [role EXCEPT ![i] = Role(i, m)]
  /\ votedFor' = [votedFor EXCEPT ![i] = Vote(i, m)]
  /\ votesGranted' = IF counts THEN [votesGranted EXCEPT ![i] = @ \union {m.msource}] ELSE votesGranted
  /\ Discard(m)
  /\ UNCHANGED <<log, commitIndex, leaderVars>>

HandleAppendEntries(m) ==
  LET i == m.mdest
      current == m.mterm >= currentTerm[i]
      logOk == \/ m.mprevLogIndex = 0
               \/ m.mprevLogIndex <= Len(log[i]) /\ m.mprevLogTerm = log[i][m.mprevLogIndex].term
      accepts == current /\ logOk
      index == m.mprevLogIndex + 1
      has == Len(log[i]) >= index /\ m.mentries # <<>> /\ log[i][index].term = m.mentries[1].term
      match == m.mprevLogIndex + Len(m.mentries)
  IN
  /\ m.mtype = "AppendEntries"
  /\ currentTerm' = [currentTerm EXCEPT ![i] = Term(i, m)]
  /\ role' = [role EXCEPT ![i] = IF current THEN "follower" ELSE @]
  /\ votedFor' = [votedFor EXCEPT ![i] = Vote(i, m)]
  /\ log' = IF accepts /\ m.mentries # <<>> /\ ~has
            THEN [log EXCEPT ![i] = SubSeq(@, 1, m.mprevLogIndex) \o m.mentries]
            ELSE log
  /\ commitIndex' = IF accepts THEN [commitIndex EXCEPT ![i] = Max(@, m.mcommitIndex)] ELSE commitIndex
  /\ Reply([mtype |-> "AppendEntriesReply", mterm |-> Term(i, m), msuccess |-> accepts,
            mmatchIndex |-> IF accepts THEN match ELSE 0, msource |-> i, mdest |-> m.msource], m)
  /\ UNCHANGED <<votesGranted, leaderVars>>

HandleAppendEntriesReply(m) ==
  LET i == m.mdest
      j == m.msource
      counts == m.mterm = currentTerm[i] /\ role[i] = "leader"
  IN
  /\ m.mtype = "AppendEntriesReply"
  /\ currentTerm' = [currentTerm EXCEPT ![i] = Term(i, m)]
  /\ role' = [role EXCEPT ![i] = Role(i, m)]
  /\ votedFor' = [votedFor EXCEPT ![i] = Vote(i, m)]
  /\ nextIndex' = IF ~counts THEN nextIndex
                  ELSE [nextIndex EXCEPT ![i][j] = IF m.msuccess THEN m.mmatchIndex + 1 ELSE Max(@ - 1, 1)]
  /\ matchIndex' = IF counts /\ m.msuccess THEN [matchIndex EXCEPT ![i][j] = m.mmatchIndex] ELSE matchIndex
  /\ Discard(m)
  /\ UNCHANGED <<log, commitIndex, votesGranted>>

Next ==
  \/ \E i \in Server : Restart(i) \/ Timeout(i) \/ BecomeLeader(i) \/ AdvanceCommitIndex(i)
  \/ \E i \in Server, v \in Nat : ClientRequest(i, v)
  \/ \E i, j \in Server : RequestVote(i, j) \/ AppendEntries(i, j)
  \/ \E m \in messages :
       \/ HandleRequestVote(m) \/ HandleRequestVoteReply(m)
       \/ HandleAppendEntries(m) \/ HandleAppendEntriesReply(m)
       \/ Drop(m)
  \/ \E m \in sent : Duplicate(m)

\* --- what must hold ---

ElectionSafety ==
  \A i, j \in Server : role[i] = "leader" /\ role[j] = "leader" /\ currentTerm[i] = currentTerm[j] => i = j

\* As far as the shorter of two logs goes.
LogMatching ==
  \A i, j \in Server :
    LET n == Min(Len(log[i]), Len(log[j]))
    IN n > 0 /\ log[i][n].term = log[j][n].term => SubSeq(log[i], 1, n) = SubSeq(log[j], 1, n)

StateMachineSafety ==
  \A i, j \in Server :
    LET n == Min(commitIndex[i], commitIndex[j])
    IN SubSeq(log[i], 1, n) = SubSeq(log[j], 1, n)
=============================================================================
