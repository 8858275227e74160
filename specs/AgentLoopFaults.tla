-------------------------- MODULE AgentLoopFaults --------------------------
(* AgentLoop with one guard missing: each file in faults/ puts one of these *)
(* in the place of a guard, and must fail.                                  *)
EXTENDS AgentLoopProps
Always(n) == TRUE
AlwaysFor(n, h) == TRUE
Never(n) == FALSE
No(n) == FALSE
=============================================================================
