--------------------------- MODULE AgentLoopProps ---------------------------
(* What must hold of AgentLoop.  "Section" is one of docs/specification.md. *)
EXTENDS AgentLoop

CleanStops == {"end_turn", "stop_sequence", "tool_use", "other", "none"}
CallStates == {"waiting", "asking", "active", "ended"}

TypeOK ==
  /\ m.phase \in Phases /\ m.fill \in Views /\ m.staged \in {"none", "little", "much"}
  /\ m.did \in Seq(STRING) /\ m.end \in Seq(STRING)
  /\ m.turn \in 1..(IF MaxTurns = 0 THEN 1 ELSE MaxTurns)
  /\ m.failures \in 0..MaxFailures /\ m.fallbacks \in 0..Fallbacks
  /\ m.hook_blocks \in [1..Hooks -> 0..HookBlocks]
  /\ m.model_calls \in 0..MaxModelCalls /\ m.over \in BOOLEAN
  /\ m.output \in 0..Budget /\ m.since \in 0..BudgetDelta /\ m.small \in BOOLEAN
  /\ m.continuations \in 0..MinContinuations
  /\ m.output_recoveries \in 0..MaxRecoveries
  /\ {m.reactive_compacted, m.escalated, m.drained, m.resending} \subseteq BOOLEAN
  /\ m.retries \in 0..MaxRetries /\ m.overloads \in 0..(Overloads - 1) /\ m.resends \in 0..MaxResends
  /\ m.blocks \in 0..MaxBlocks /\ Len(m.calls) <= MaxCalls
  /\ \A i \in 1..Len(m.calls) : m.calls[i].state \in CallStates /\ m.calls[i].kind \in Kinds \union {"ended"}
  /\ {m.streaming, m.complete, m.stopped, m.broken} \subseteq BOOLEAN
  /\ m.abort \in {"none", "submit", "hard"}
  /\ m.withheld \in {"nothing", "too_long", "window", "media"}
  /\ m.shorter \in 0..MaxShorter /\ {m.last_round, m.crashed} \subseteq BOOLEAN
  /\ m.asked \in 0..Hooks /\ {m.blocking, m.prevented} \subseteq BOOLEAN /\ m.stop \in CleanStops

\* Section 4: one terminal on every path, and it is last.
OneEnd == /\ (m.phase = "done") <=> (m.end # <<>>)
          /\ \A i \in 1..Len(m.did) : m.did[i] = "Finish" => i = Len(m.did) /\ m.phase = "done"
\* Section 9, 4: an error that the consumer sees is followed by the terminal only.
ErrorIsLast == \A i \in 1..Len(m.did) : m.did[i] = "ErrorShown" => i = Len(m.did) - 1 /\ m.phase = "done"
\* Section 6: unsafe calls run alone, and after the response is whole.
UnsafeAlone == \A i \in Active(m) : m.calls[i].kind \notin Safe => (m.complete /\ Active(m) = {i})
\* Section 9, 5: no autocompact after so many failures in a row; section 9, 6: hooks after a clean answer only.
BreakerHolds == m.phase = "compacting" => m.failures < MaxFailures
HooksAfterClean == m.phase = "checking" => m.stop # "none"
\* Section 1: a run that is not over is owed an answer.
Owed == m.phase \notin AtRest => ENABLED Answer

(* ---- the recovery guards, over single steps (sections 3 and 5) ------------------------------------ *)
Did(what) == \E i \in 1..Len(m'.did) : m'.did[i] = what
Goes == m'.phase \notin {"aborting", "done"}
Ends(reason) == m'.phase = "done" /\ m.phase # "done" /\ m'.end[1] = reason

RecoveryGuards == [][
  /\ Did("reactive_compact_retry") => ~m.reactive_compacted /\ (Goes => m'.reactive_compacted)
  /\ Did("collapse_drain_retry") => ~m.drained /\ m.staged # "none" /\ (Goes => m'.drained)
  /\ Did("max_output_tokens_escalate") => ~m.escalated /\ (Goes => m'.escalated)
  /\ Did("max_output_tokens_recovery") =>
       /\ m.output_recoveries < MaxRecoveries /\ (Goes => m'.output_recoveries = m.output_recoveries + 1)
       /\ "escalate" \in Gates => m.escalated
  /\ Did("stop_hook_blocking") => (Goes => m'.reactive_compacted = m.reactive_compacted)
  /\ Did("token_budget_continuation") => 10 * m'.output < 9 * Budget \/ ~Goes
  /\ (m.reactive_compacted /\ ~m'.reactive_compacted /\ Goes) => Did("next_turn") \/ Did("token_budget_continuation")
  /\ (m.escalated /\ ~m'.escalated /\ Goes) =>
       Did("next_turn") \/ Did("token_budget_continuation") \/ Did("stop_hook_blocking")
  /\ Did("Wait") => m.retries < MaxRetries
  /\ \A h \in 1..Hooks : m'.hook_blocks[h] < m.hook_blocks[h] => ~Goes
  /\ Ends("prompt_too_long") =>
       \/ m.phase = "reacting"
       \/ /\ "reactive_compact" \in Gates => m.reactive_compacted
          /\ "collapse" \in Gates => m.staged = "none" \/ m.drained
  ]_m

(* ---- termination, and no spinning (section 5) ------------------------------------------------------ *)
\* Whatever the world says, if it answers, each run that begins is over in the end.
Terminates == TheWorldAnswers => []<>(m.phase \in AtRest)

\* With turns and calls unlimited: infinitely many steps are infinitely many turns, or new runs.
Begins == \/ m.phase \in AtRest /\ m'.phase \notin AtRest
          \/ Did("next_turn")
NoSpin == []<><<TRUE>>_m => []<><<Begins>>_m
=============================================================================
