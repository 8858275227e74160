------------------------------ MODULE AgentLoop ------------------------------
(***************************************************************************)
(* The agent loop, written a third time: what docs/specification.md says   *)
(* of control, one action for each event of the engine.  "Section" below   *)
(* is a section of that page.                                              *)
(*                                                                         *)
(* One event is one step.  Junctions (does the view fit, may a request     *)
(* leave, which call may begin) are left in the step that enters them, so  *)
(* they are operators: from a machine to the set of machines that may      *)
(* come of it.  `did` is what the last step put out, in order: orders,     *)
(* ends of calls, withdrawn answers, the continue's name, errors shown.    *)
(*                                                                         *)
(* Left out, because it decides nothing: messages, texts, ids, times,      *)
(* progress, queued words, late answers, memories, summaries.  They are    *)
(* stuttering steps.  Counters that nothing reads any more are at rest.    *)
(***************************************************************************)
EXTENDS Integers, Sequences

CONSTANTS
  \* limits (0 in MaxTurns, MaxModelCalls and Budget: off)
  MaxTurns, MaxModelCalls, MaxFailures, MaxShorter, MaxRecoveries, MaxRetries, MaxResends,
  Overloads, Fallbacks, Hooks, HookBlocks, Budget, BudgetDelta, MinContinuations,
  MaxBlocks, MaxCalls, MaxParallel,
  Gates,      \* autocompact, reactive_compact, collapse, escalate, streaming_tools, context_limit, main_run
  \* the world: what it may say
  Stops, Reports, Outputs, Failures, Shown, Bills, Kinds, Endings, Verdicts, Compactions, Aborts, Crashes,
  Staged,     \* what is staged before a first run: none; little or much: what a drain of it frees
  Exact,      \* views grow and shrink by reports and compactions only; else by themselves, too
  Tells       \* what `did` keeps: "all", "turns", "nothing" (where only phases matter: fewer states)

VARIABLE m    \* the machine

AtRest == {"idle", "done"}
Waiting == {"waiting", "compacting", "reacting", "checking"}
Phases == AtRest \union Waiting \union {"sampling", "running", "aborting"}

\* The view against the thresholds: under autocompact's, under the blocking limit, at or over it (section 2).
Views == {"low", "full", "over"}
Rank == [low |-> 0, full |-> 1, over |-> 2]
Grown(v) == IF Exact THEN {v} ELSE {w \in Views : Rank[w] >= Rank[v]}
Drained(v, much) == IF Exact THEN {IF much THEN "low" ELSE v} ELSE {w \in Views : Rank[w] <= Rank[v]}

Rest == [phase |-> "idle", did |-> <<>>, end |-> <<>>, fill |-> "low", staged |-> "none",
         \* the run
         turn |-> 1, failures |-> 0, fallbacks |-> 0, hook_blocks |-> [h \in 1..Hooks |-> 0],
         model_calls |-> 0, over |-> FALSE,        \* over: tokens or money are spent
         output |-> 0, since |-> 0, small |-> TRUE, continuations |-> 0,
         \* the ladders, and the iteration
         output_recoveries |-> 0, reactive_compacted |-> FALSE, escalated |-> FALSE, drained |-> FALSE,
         retries |-> 0, overloads |-> 0, resends |-> 0, resending |-> FALSE,
         \* the scratch of one phase
         streaming |-> FALSE, complete |-> FALSE, blocks |-> 0, calls |-> <<>>,
         stopped |-> FALSE, broken |-> FALSE, abort |-> "none",
         withheld |-> "nothing", shorter |-> 0, last_round |-> FALSE, crashed |-> FALSE,
         asked |-> 0, blocking |-> FALSE, prevented |-> FALSE, stop |-> "none"]

Quiet(n) == [n EXCEPT !.did = <<>>]
Told(did, what) == IF Tells = "all" \/ (Tells = "turns" /\ what = "next_turn") THEN Append(did, what) ELSE did
Put(n, what) == [n EXCEPT !.did = Told(@, what)]
Cleared(n) == [n EXCEPT !.streaming = FALSE, !.complete = FALSE, !.blocks = 0, !.calls = <<>>,
                        !.stopped = FALSE, !.broken = FALSE, !.withheld = "nothing", !.shorter = 0,
                        !.last_round = FALSE, !.crashed = FALSE, !.asked = 0, !.blocking = FALSE,
                        !.prevented = FALSE, !.stop = "none"]

(* ---- the guards, each by a name, so that a model without it is one line -------------------------- *)
Less(n, limit) == n < limit
BreakerClosed(n)  == Less(n.failures, MaxFailures)             \* section 5, failed compaction
ReactiveLeft(n)   == ~n.reactive_compacted                     \* section 3, reactive_compact_retry
DrainLeft(n)      == ~n.drained                                \* section 3, collapse_drain_retry
EscalationLeft(n) == ~n.escalated                              \* section 3, max_output_tokens_escalate
RecoveryLeft(n)   == Less(n.output_recoveries, MaxRecoveries)  \* section 3, max_output_tokens_recovery
RetryLeft(n)      == Less(n.retries, MaxRetries)               \* section 5, failed calls
ResendLeft(n)     == Less(n.resends, MaxResends)               \* section 5, re-sends after a pause
FallbackLeft(n)   == Less(n.fallbacks, Fallbacks)              \* section 5, overload
ShorterLeft(n)    == Less(n.shorter, MaxShorter)               \* section 5, failed compaction
HookLeft(n, h)    == Less(n.hook_blocks[h], HookBlocks)        \* section 5, stop hooks
TurnLeft(n)       == MaxTurns = 0 \/ n.turn < MaxTurns         \* section 2, step 7
FirstCrash(n)     == ~n.crashed                                \* section 8, crash
ReactiveAfterBlock(n) == n.reactive_compacted                  \* section 3: a stop hook never resets it
Fading(n) == n.continuations >= MinContinuations /\ n.since < BudgetDelta /\ n.small  \* section 5, budget
Barred(n) == n.over \/ (MaxModelCalls # 0 /\ n.model_calls >= MaxModelCalls)          \* section 2, step 2

Plus(n, limit) == IF n < limit THEN n + 1 ELSE n

(* ---- the ten terminals (section 4): the run is over, and a new one begins afresh ------------------ *)
Left(n) == IF Exact THEN n.fill ELSE "low"            \* how full the next run finds the view
Over(n, end) == [Rest EXCEPT !.phase = "done", !.end = end, !.did = Told(n.did, "Finish"),
                             !.fill = Left(n), !.staged = n.staged]
Surface(n, end) == Over(Put(n, "ErrorShown"), end)
Blocked(n) == Over(n, <<"blocking_limit",
                        IF MaxModelCalls # 0 /\ n.model_calls >= MaxModelCalls THEN "model_calls" ELSE "spent">>)

(* ---- before a request (section 2, steps 1 and 2) ------------------------------------------------- *)
Request(n, order) == [Put(n, order) EXCEPT !.model_calls = IF MaxModelCalls = 0 THEN 0 ELSE @ + 1]

Call(n) == IF Barred(n) THEN {Blocked(n)}
           ELSE {[Request(Cleared(n), "CallModel") EXCEPT !.phase = "sampling", !.streaming = TRUE]}

Compact(n, phase, withheld) ==
  {[Request(Cleared(n), "Compact") EXCEPT !.phase = phase, !.withheld = withheld, !.last_round = r]
     : r \in IF Exact THEN {FALSE} ELSE BOOLEAN}

Due(n, tried) == "autocompact" \in Gates /\ n.fill # "low" /\ tried = "not" /\ BreakerClosed(n)
Full(n, tried) == /\ "context_limit" \in Gates /\ n.fill = "over" /\ tried # "worked"
                  /\ ~("reactive_compact" \in Gates /\ ~n.reactive_compacted)
                  /\ ~("collapse" \in Gates /\ n.staged # "none")

RECURSIVE Fit(_, _)
Fit(n, tried) ==
  IF "collapse" \in Gates /\ n.staged # "none" /\ n.fill # "low"
  THEN UNION {Fit([n EXCEPT !.staged = "none", !.fill = v], tried) : v \in Drained(n.fill, n.staged = "much")}
  ELSE IF Due(n, tried) /\ Barred(n) THEN {Blocked(n)}
  ELSE IF Due(n, tried) THEN Compact(n, "compacting", "nothing")
  ELSE IF Full(n, tried) THEN {Over(n, <<"blocking_limit", "context">>)}
  ELSE Call(n)

Prepare(n) == UNION {Fit([n EXCEPT !.fill = v], "not") : v \in Grown(n.fill)}

(* ---- the seven continues (section 3): all set the iteration anew, and name what else they set ------ *)
Continue(n, reason) == [Cleared(Put(n, reason)) EXCEPT !.drained = (reason = "collapse_drain_retry"),
                                                       !.retries = 0, !.overloads = 0, !.resends = 0]

CollapseDrainRetry(n, partial) ==
  UNION {Prepare([Continue(n, "collapse_drain_retry") EXCEPT
                    !.staged = "none", !.fill = v, !.resending = @ /\ ~partial])
           : v \in Drained(n.fill, n.staged = "much")}
ReactiveCompactRetry(n, v) ==
  Prepare([Continue(n, "reactive_compact_retry") EXCEPT
             !.fill = v, !.staged = "none", !.reactive_compacted = TRUE,
             !.resending = @ /\ n.withheld # "window"])
MaxOutputTokensEscalate(n) ==
  Prepare([Continue(n, "max_output_tokens_escalate") EXCEPT !.escalated = TRUE])
MaxOutputTokensRecovery(n) ==
  Prepare([Continue(n, "max_output_tokens_recovery") EXCEPT
             !.output_recoveries = Plus(@, MaxRecoveries), !.resending = FALSE])
StopHookBlocking(n) ==
  Prepare([Continue(n, "stop_hook_blocking") EXCEPT
             !.output_recoveries = 0, !.reactive_compacted = ReactiveAfterBlock(n), !.escalated = FALSE,
             !.resending = FALSE])
TokenBudgetContinuation(n) ==
  Prepare([Continue(n, "token_budget_continuation") EXCEPT
             !.output_recoveries = 0, !.reactive_compacted = FALSE, !.escalated = FALSE, !.resending = FALSE,
             !.continuations = Plus(@, MinContinuations), !.small = (n.since < BudgetDelta), !.since = 0])
NextTurn(n) ==
  Prepare([Continue(n, "next_turn") EXCEPT
             !.turn = IF MaxTurns = 0 THEN @ ELSE Plus(@, MaxTurns),
             !.output_recoveries = 0, !.reactive_compacted = FALSE, !.escalated = FALSE, !.resending = FALSE])

(* ---- the calls of an answer (section 6) ---------------------------------------------------------- *)
Safe == {"safe", "safe_asks", "safe_denied", "safe_shell", "safe_idempotent"}   \* may run beside others
Asks == {"safe_asks", "asks"}
Denied == {"safe_denied"}
Refused == Denied \union {"unknown"}
Shell == {"shell", "safe_shell"}
Idempotent == {"idempotent", "safe_idempotent"}
Cancelling == {"safe_shell", "asks"}                  \* a submit abort stops these, and waits for others

Ended == [kind |-> "ended", state |-> "ended", rerun |-> FALSE]
Open(n) == {i \in 1..Len(n.calls) : n.calls[i].state # "ended"}
Active(n) == {i \in 1..Len(n.calls) : n.calls[i].state \in {"asking", "active"}}
Alone(n) == \E i \in Active(n) : n.calls[i].kind \notin Safe
Heads(n) == {i \in 1..Len(n.calls) : n.calls[i].state = "waiting"}
Head1(n) == CHOOSE i \in Heads(n) : \A j \in Heads(n) : i <= j
Actives(n) == LET RECURSIVE Count(_)
                  Count(s) == IF s = {} THEN 0 ELSE 1 + Count(s \ {CHOOSE x \in s : TRUE})
              IN Count(Active(n))
MayBegin(n, i) ==
  IF n.calls[i].kind \in Safe
  THEN (n.complete \/ "streaming_tools" \in Gates) /\ ~Alone(n) /\ Actives(n) < MaxParallel
  ELSE n.complete /\ Active(n) = {}

End(n, i, status) == [Put(n, status) EXCEPT !.calls[i] = Ended]
Begin(n, i, state, order) == [Put(n, order) EXCEPT !.calls[i].state = state]

\* Each call from the i-th on that is active, but those to be kept, is cancelled.
RECURSIVE Cancelled(_, _, _)
Cancelled(n, i, keep) ==
  IF i > Len(n.calls) THEN n
  ELSE IF i \in Active(n) \ keep
  THEN Cancelled(End(Put(n, IF n.calls[i].state = "asking" THEN "Cancel" ELSE "CancelTool"), i, "cancelled"),
                 i + 1, keep)
  ELSE Cancelled(n, i + 1, keep)

\* Each call that has not begun is not run.
RECURSIVE Skipped(_)
Skipped(n) == IF Heads(n) = {} THEN n ELSE Skipped(End(n, Head1(n), "cancelled"))

\* The process died: what was active is unknown.
RECURSIVE Lost(_, _)
Lost(n, i) == IF i > Len(n.calls) THEN n
              ELSE Lost(IF i \in Active(n) THEN End(n, i, "unknown") ELSE n, i + 1)

Cut(n) == Skipped(Cancelled(n, 1, {}))                \* a cut answer that is kept (section 2, step 3)
Withdrawn(n, shown) ==                                \* an attempt that is dropped (section 5)
  LET c == Cancelled(n, 1, {}) IN IF shown \/ n.blocks > 0 THEN Put(c, "Tombstone") ELSE c

RECURSIVE Schedule(_)
Schedule(n) ==
  LET i == Head1(n)
      kind == n.calls[i].kind
  IN IF Heads(n) # {} /\ (n.stopped \/ n.broken) THEN Schedule(End(n, i, "cancelled"))
     ELSE IF Heads(n) # {} /\ MayBegin(n, i) THEN
       Schedule(IF kind \in Refused THEN End(n, i, IF kind \in Denied THEN "denied" ELSE "failed")
                ELSE IF kind \in Asks THEN Begin(n, i, "asking", "AskPermission")
                ELSE Begin(n, i, "active", "RunTool"))
     ELSE IF n.streaming THEN {[n EXCEPT !.phase = "sampling"]}
     ELSE IF Open(n) # {} THEN {[n EXCEPT !.phase = "running", !.blocks = 0]}
     ELSE IF n.stopped THEN {Over(n, <<"hook_stopped">>)}
     ELSE IF ~TurnLeft(n) THEN {Over(n, <<"max_turns">>)}
     ELSE NextTurn(n)

(* ---- after an abort (section 8) ------------------------------------------------------------------ *)
Unwind(n) == IF n.streaming \/ Active(n) # {}
             THEN {[Rest EXCEPT !.phase = "aborting", !.did = n.did, !.fill = Left(n), !.staged = n.staged,
                                !.abort = n.abort, !.complete = n.complete, !.streaming = n.streaming,
                                !.calls = n.calls, !.blocks = IF n.streaming THEN n.blocks ELSE 0]}
             ELSE {Over(n, <<IF n.complete THEN "aborted_tools" ELSE "aborted_streaming", n.abort>>)}

Stop(n, kind) ==
  LET keep == IF kind = "hard" THEN {}
              ELSE {i \in Active(n) : n.calls[i].state = "active" /\ n.calls[i].kind \notin Cancelling}
  IN Skipped(Cancelled([n EXCEPT !.abort = kind], 1, keep))

(* ---- the clean end (section 2, step 6; section 5) ------------------------------------------------- *)
HooksLeft(n) == {h \in (n.asked + 1)..Hooks : HookLeft(n, h)}
AskHook(n) == {[Put(n, "RunHook") EXCEPT !.phase = "checking", !.crashed = FALSE,
                  !.asked = CHOOSE h \in HooksLeft(n) : \A g \in HooksLeft(n) : h <= g]}

UnderBudget(n) == Budget # 0 /\ "main_run" \in Gates /\ 10 * n.output < 9 * Budget
EndingOf(stop) == IF stop = "tool_use" THEN "missing_call" ELSE stop
Settle(n) ==
  IF UnderBudget(n) /\ ~Fading(n) THEN TokenBudgetContinuation(n)
  ELSE {Over(n, <<"completed", EndingOf(n.stop)>> \o (IF UnderBudget(n) THEN <<"cut_short">> ELSE <<>>))}

Decide(n) == IF HooksLeft(n) # {} THEN AskHook(n)
             ELSE IF n.prevented THEN {Over(n, <<"stop_hook_prevented">>)}
             ELSE IF n.blocking THEN StopHookBlocking(n)
             ELSE Settle(n)

Clean(n, stop) ==
  LET c == [Cleared(IF "main_run" \in Gates THEN Put(n, "Background") ELSE n) EXCEPT !.stop = stop]
  IN IF HooksLeft(c) # {} THEN AskHook(c) ELSE Settle(c)

Pauses == {"pause_turn", "compaction"}
Cutting == {"model_context_window_exceeded", "max_tokens", "refusal"}

(* ---- the ladders (section 5) ---------------------------------------------------------------------- *)
CanReact(n) == "reactive_compact" \in Gates /\ ReactiveLeft(n)

TooLong(n, kind) ==
  IF "collapse" \in Gates /\ n.staged # "none" /\ DrainLeft(n) THEN CollapseDrainRetry(n, kind = "window")
  ELSE IF CanReact(n) /\ Barred(n) THEN {Blocked(n)}
  ELSE IF CanReact(n) THEN Compact(n, "reacting", kind)
  ELSE {Surface(n, <<"prompt_too_long">>)}

MediaTooLarge(n) ==
  IF CanReact(n) /\ Barred(n) THEN {Blocked(n)}
  ELSE IF CanReact(n) THEN Compact(n, "reacting", "media")
  ELSE {Surface(n, <<"image_error">>)}

Truncated(n, shown) ==
  IF "escalate" \in Gates /\ EscalationLeft(n) THEN MaxOutputTokensEscalate(Withdrawn(n, shown))
  ELSE IF RecoveryLeft(n) THEN MaxOutputTokensRecovery(Cut(n))
  ELSE {Surface(Cut(n), <<"completed", "truncated">>)}

Paused(n) ==
  IF ResendLeft(n)
  THEN UNION {Call([n EXCEPT !.fill = v, !.resends = Plus(@, MaxResends), !.retries = 0, !.overloads = 0,
                             !.resending = @ \/ n.blocks > 0]) : v \in Grown(n.fill)}
  ELSE {Over(n, <<"completed", "paused">>)}

Retry(n, overloaded) ==
  {[Cleared(Put(n, "Wait")) EXCEPT !.phase = "waiting", !.retries = Plus(@, MaxRetries),
                                   !.overloads = IF overloaded THEN Plus(@, Overloads - 1) ELSE 0]}
FallBack(n) == Call([n EXCEPT !.fallbacks = Plus(@, Fallbacks), !.retries = 0, !.overloads = 0])
ModelError(n) == {Surface(n, <<"model_error">>)}

\* What follows an answer: not the stop reason but the presence of calls, unless it was cut, refused or paused.
Answered(n, stop, shown) ==
  CASE stop = "model_context_window_exceeded" -> TooLong(Cut(n), "window")
    [] stop = "max_tokens" -> Truncated(n, shown)
    [] stop = "refusal" -> {Over(Cut(n), <<"completed", "refusal">>)}
    [] stop \in Pauses /\ n.calls = <<>> -> Paused(n)
    [] stop \notin Cutting /\ n.calls # <<>> -> Schedule([n EXCEPT !.complete = TRUE, !.streaming = FALSE])
    [] OTHER -> Clean(n, stop)

Failed(n, kind) ==
  CASE kind \in {"prompt_too_long", "request_too_large"} -> TooLong(n, "too_long")
    [] kind = "media_too_large" -> MediaTooLarge(n)
    [] kind = "overloaded" /\ n.overloads + 1 >= Overloads /\ FallbackLeft(n) -> FallBack(n)
    [] kind = "wait_too_long" -> IF FallbackLeft(n) THEN FallBack(n) ELSE ModelError(n)
    [] kind \in {"overloaded", "transport"} /\ RetryLeft(n) -> Retry(n, kind = "overloaded")
    [] OTHER -> ModelError(n)

CompactionGaveNothing(n) ==
  IF n.phase = "compacting" THEN Fit([n EXCEPT !.failures = Plus(@, MaxFailures)], "failed")
  ELSE {Surface(n, IF n.withheld = "media" THEN <<"image_error">> ELSE <<"prompt_too_long">>)}

-----------------------------------------------------------------------------
(* ---- the events ------------------------------------------------------------------------------------ *)
Billed(n, bill) == [Quiet(n) EXCEPT !.over = @ \/ bill]
Min(a, b) == IF a < b THEN a ELSE b

\* Section 1: a run begins, on nothing or on what a finished one left.
RunStarted == /\ m.phase \in AtRest
              /\ m' \in Prepare([Quiet(m) EXCEPT !.end = <<>>])

\* Section 2, step 3; section 6; in an abort what comes is kept and its call not run (section 8).
BlockCompleted(kind) ==
  /\ m.phase \in {"sampling", "aborting"} /\ m.streaming
  /\ kind # "text" => Len(m.calls) < MaxCalls
  /\ LET full == m.blocks >= MaxBlocks
         one == [Quiet(m) EXCEPT !.blocks = @ + 1,
                   !.calls = IF kind = "text" THEN @
                             ELSE Append(@, [kind |-> kind, state |-> "waiting", rerun |-> FALSE])]
     IN m' \in IF full THEN {Quiet(m)}
               ELSE IF m.phase = "aborting" THEN Unwind(Skipped(one))
               ELSE Schedule(one)

\* Section 2, steps 3 and 6.  The API reports how full the view is, what the answer cost and what it brought.
StreamClosed(stop, report, tokens, shown, bill) ==
  /\ m.phase \in {"sampling", "aborting"} /\ m.streaming
  /\ LET n == [Billed(m, bill) EXCEPT !.fill = IF report = "none" THEN @ ELSE report,
                 !.output = Min(@ + tokens, Budget), !.since = Min(@ + tokens, BudgetDelta)]
     IN m' \in IF m.phase = "aborting" THEN Unwind([n EXCEPT !.streaming = FALSE])
               ELSE Answered(n, stop, shown)

\* Section 5: the ladders of a failed call.
StreamFailed(kind, shown, bill) ==
  /\ m.phase \in {"sampling", "aborting"} /\ m.streaming
  /\ LET n == Billed(m, bill)
     IN m' \in IF m.phase = "aborting" THEN Unwind([n EXCEPT !.streaming = FALSE])
               ELSE Failed(Withdrawn(n, shown), kind)

\* Section 8.
StreamCancelled == /\ m.phase = "aborting" /\ m.streaming
                   /\ m' \in Unwind([Quiet(m) EXCEPT !.streaming = FALSE])

\* Section 6; "stop": a hook of the tool asked to stop the run.
ToolEnded(i, ending) ==
  /\ m.phase \in {"sampling", "running", "aborting"} /\ i <= Len(m.calls) /\ m.calls[i].state = "active"
  /\ LET breaks == ending = "failed" /\ m.calls[i].kind \in Shell /\ ~m.broken
         one == End([Quiet(m) EXCEPT !.stopped = @ \/ ending = "stop", !.broken = @ \/ breaks], i,
                    IF ending = "stop" THEN "completed" ELSE ending)
         n == IF breaks THEN Cancelled(one, 1, {}) ELSE one
     IN m' \in IF m.phase = "aborting" THEN Unwind(n) ELSE Schedule(n)

PermissionAnswered(i, answer) ==
  /\ m.phase \in {"sampling", "running"} /\ i <= Len(m.calls) /\ m.calls[i].state = "asking"
  /\ LET run == answer = "allowed" /\ ~m.stopped /\ ~m.broken
         n == [Quiet(m) EXCEPT !.stopped = @ \/ answer = "stop"]
     IN m' \in Schedule(IF run THEN [Begin(n, i, "active", "RunTool") EXCEPT !.calls[i].rerun = FALSE]
                        ELSE End(n, i, IF answer = "denied" THEN "denied" ELSE "cancelled"))

\* Section 5: back-off is over.
WaitElapsed == m.phase = "waiting" /\ m' \in Call(Quiet(m))

\* Sections 2, 3 and 5.  `v` is the new view, "empty" no summary at all; a smaller one may be kept.
Compacted(v, smaller, bill) ==
  /\ m.phase \in {"compacting", "reacting"}
  /\ v = "empty" => smaller
  /\ v # "empty" => IF smaller THEN Rank[v] <= Rank[m.fill] ELSE Rank[v] >= Rank[m.fill]
  /\ LET n == Billed(m, bill)
         applied == [n EXCEPT !.fill = v, !.staged = "none"]
         works == v \in {"low", "full"} /\ (m.withheld = "media" => smaller)
     IN m' \in
        IF m.phase = "reacting"
        THEN IF works THEN ReactiveCompactRetry(n, v) ELSE CompactionGaveNothing(n)
        ELSE IF v = "low" THEN Fit([applied EXCEPT !.failures = 0], "worked")
        ELSE CompactionGaveNothing(IF smaller /\ v # "empty" THEN applied ELSE n)

\* Section 5; "too_long": the summary's own request was; `all`: every round but the last must be dropped.
CompactionFailed(kind, all, bill) ==
  /\ m.phase \in {"compacting", "reacting"}
  /\ LET n == Billed(m, bill)
         again == kind = "too_long" /\ ~m.last_round /\ ShorterLeft(m)
     IN m' \in
        IF again /\ Barred(n) THEN {Blocked(n)}
        ELSE IF again
        THEN {[Request(n, "Compact") EXCEPT !.shorter = Plus(@, MaxShorter), !.crashed = FALSE, !.last_round = r]
                : r \in IF Exact \/ all THEN {all} ELSE BOOLEAN}
        ELSE CompactionGaveNothing(n)

\* Section 5, stop hooks: all that are not spent, in order, before the decision; crash and timeout block nothing.
HookAnswered(verdict) ==
  /\ m.phase = "checking"
  /\ m' \in Decide([Quiet(m) EXCEPT !.blocking = @ \/ verdict = "block",
                                    !.prevented = @ \/ verdict = "prevent",
                                    !.hook_blocks[m.asked] = IF verdict = "block" THEN Plus(@, HookBlocks) ELSE @])

\* Section 8: the user stops the run.
AbortRequested(kind) ==
  LET n == Quiet(m)
      harder == kind = "hard" /\ m.abort = "submit"
  IN m' \in
     CASE m.phase = "sampling" -> Unwind(Stop(Put(n, "CancelModel"), kind))
       [] m.phase = "running" -> Unwind(Stop(n, kind))
       [] m.phase = "aborting" -> IF harder THEN Unwind(Stop(n, kind)) ELSE {n}
       [] m.phase \in Waiting -> {Over(Put(n, "Cancel"), <<"aborted_streaming", kind>>)}
       [] OTHER -> {n}

\* Section 8: the process died, a new one takes up the log.
RECURSIVE Settled(_, _)
Settled(n, i) ==
  IF i > Len(n.calls) THEN n
  ELSE LET c == n.calls[i]
           once == (c.state = "asking" \/ c.kind \in Idempotent) /\ ~c.rerun
       IN Settled(IF i \notin Active(n) THEN n
                  ELSE IF once
                  THEN [Put(n, IF c.state = "asking" THEN "AskPermission" ELSE "RunTool")
                          EXCEPT !.calls[i].rerun = TRUE]
                  ELSE End(n, i, IF c.state = "asking" THEN "denied" ELSE "unknown"), i + 1)

Spent(n) == [n EXCEPT !.retries = Plus(@, MaxRetries)]
Resumed ==
  LET n == Quiet(m)
      lost == LET c == Lost(n, 1) IN IF n.blocks > 0 THEN Put(c, "Tombstone") ELSE c
      fatal == Lost(Put(n, "CancelModel"), 1)
  IN m' \in
     CASE m.phase = "sampling" ->
            IF RetryLeft(m) THEN Call(Spent(lost))
            ELSE ModelError(IF m.blocks > 0 THEN Put(fatal, "Tombstone") ELSE fatal)
       [] m.phase = "waiting" ->
            IF RetryLeft(m) THEN {Spent(Put(n, "Wait"))} ELSE ModelError(Put(n, "Cancel"))
       [] m.phase \in {"compacting", "reacting"} ->
            IF FirstCrash(m) /\ Barred(m) THEN {Blocked(Put(n, "Cancel"))}
            ELSE IF FirstCrash(m) THEN {[Request(n, "Compact") EXCEPT !.crashed = TRUE]}
            ELSE CompactionGaveNothing(IF m.phase = "reacting" THEN Put(n, "Cancel") ELSE n)
       [] m.phase = "running" -> Schedule(Settled(n, 1))
       [] m.phase = "checking" ->
            IF FirstCrash(m) THEN {[Put(n, "RunHook") EXCEPT !.crashed = TRUE]} ELSE Decide(n)
       [] m.phase = "aborting" -> Unwind([Lost(n, 1) EXCEPT !.streaming = FALSE])
       [] OTHER -> {n}

-----------------------------------------------------------------------------
Answer ==
  \/ \E k \in Kinds \union {"text"} : BlockCompleted(k)
  \/ \E s \in Stops, r \in Reports \union {"none"}, t \in Outputs :
       \E w \in (IF s = "max_tokens" THEN Shown ELSE {FALSE}), b \in (IF r = "none" THEN Bills ELSE {FALSE}) :
         StreamClosed(s, r, t, w, b)
  \/ \E k \in Failures, w \in Shown, b \in Bills : StreamFailed(k, w, b)
  \/ StreamCancelled
  \/ \E i \in 1..MaxCalls, e \in Endings : ToolEnded(i, e)
  \/ \E i \in 1..MaxCalls, p \in {"allowed", "denied", "stop"} : PermissionAnswered(i, p)
  \/ WaitElapsed
  \/ \E v \in Compactions, s \in BOOLEAN, b \in Bills : Compacted(v, s, b)
  \/ \E k \in {"too_long", "other"}, a \in BOOLEAN, b \in Bills : CompactionFailed(k, a, b)
  \/ \E v \in Verdicts : HookAnswered(v)

User == \/ RunStarted
        \/ \E k \in Aborts : AbortRequested(k)
        \/ Crashes /\ Resumed

Init == m \in {[Rest EXCEPT !.staged = s] : s \in Staged}
Next == Answer \/ User

Moves == Init /\ [][Next]_m

\* The world answers: whoever is owed an answer gets one in the end, whatever it says.  The deadlines of Config
\* make that true (a permission prompt waits for a person).  This is weak fairness of Next, WF_m(Next), written
\* without ENABLED, which is dear to check: a run that is not at rest is always owed an answer (Owed).
TheWorldAnswers == []<>(m.phase \in AtRest) \/ []<><<TRUE>>_m
Spec == Moves /\ TheWorldAnswers
=============================================================================
