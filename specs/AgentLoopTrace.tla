--------------------------- MODULE AgentLoopTrace ---------------------------
(* Are recorded runs of the engine behaviours of AgentLoop?  TraceData is     *)
(* generated: Starts, how each trace begins; Said, the events that occur;     *)
(* Outs, Calls and Changes, what `did`, `calls` and the rest became; Traces,  *)
(* sequences of numbers of these four: an event (0: it decides nothing), an   *)
(* out, calls, changes.  A step that the model does not allow leaves no       *)
(* successor, which TLC reports as a deadlock.                                *)
EXTENDS AgentLoopProps, TraceData
VARIABLES trace, place

Event(name, p) ==
  CASE name = "RunStarted" -> RunStarted
    [] name = "BlockCompleted" -> BlockCompleted(p[1])
    [] name = "StreamClosed" -> StreamClosed(p[1], p[2], p[3], p[4], p[5])
    [] name = "StreamFailed" -> StreamFailed(p[1], p[2], p[3])
    [] name = "StreamCancelled" -> StreamCancelled
    [] name = "ToolEnded" -> ToolEnded(p[1], p[2])
    [] name = "PermissionAnswered" -> PermissionAnswered(p[1], p[2])
    [] name = "WaitElapsed" -> WaitElapsed
    [] name = "Compacted" -> Compacted(p[1], p[2], p[3])
    [] name = "CompactionFailed" -> CompactionFailed(p[1], p[2], p[3])
    [] name = "HookAnswered" -> HookAnswered(p[1])
    [] name = "AbortRequested" -> AbortRequested(p[1])
    [] name = "Resumed" -> Resumed

Here == Traces[trace][place + 1]
AtEnd == place = Len(Traces[trace])

Changed(n, changes) == [f \in DOMAIN n |-> IF f \in DOMAIN changes THEN changes[f] ELSE n[f]]

TraceInit == trace \in 1..Len(Traces) /\ place = 0 /\ m = Changed(Rest, Starts[trace]) /\ Init
Step == /\ ~AtEnd /\ place' = place + 1 /\ UNCHANGED trace
        /\ m' = [Changed(m, Changes[Here[4]]) EXCEPT !.did = Outs[Here[2]], !.calls = Calls[Here[3]]]
        /\ IF Here[1] = 0 THEN m' = Quiet(m)
           ELSE Event(Said[Here[1]][1], Said[Here[1]][2])
Rests == AtEnd /\ UNCHANGED <<m, trace, place>>
TraceMoves == TraceInit /\ [][Step \/ Rests]_<<m, trace, place>>
=============================================================================
