/*
Package checkout is the order saga: reserve stock, charge, create the order,
notify; on failure the compensations in reverse order, only of effects that the
checkout owns. There is no two-phase commit: each participant keeps its own table,
and each command to it is idempotent by checkout.

The state machine infra/statemachines/checkout.asl.json drives it:

	ReserveStock → Charge → CreateOrder → Complete → Notify
	                  ↘          ↙ (backward)
	       CancelOrder → UndoCharge → ReleaseStock → Close

An execution drives a checkout as far as it goes, always from the start: every
step reads what is already done. A payment that waits for the customer or the PSP
ends the execution; its final event starts another one (Wake), under a name with
a counter that is raised before each start, so that no wake-up is swallowed by a
name that exists already.

Charge, Complete, UndoCharge and Close are this package's commands (Saga). They
tell the state machine where to go by two errors: WaitingError ends the execution,
BackwardError leads to the compensations. Both are told from a committed state.
Any other error is repeated, and then left to the sweep: nothing is compensated
because of an error.

The direction is one-way. The transaction that sends the charge checks that it is
forward; compensation begins by committing backward. The order is the pivot: once
it is recorded the checkout is finished, however often that must be tried. An order
that was made and not recorded before the saga turned back is canceled, and whoever
comes late to make one is refused.

Every event of a checkout is committed on the version that it was decided on. Who
loses a race decides anew: an execution that is late never asks a customer who has
paid, and never parks a checkout that somebody has resumed.

What fails, and what then:

  - A step's outcome is unknown: the step is repeated, it is idempotent.
  - Nothing started the execution, or it died: the due date of the checkout brings
    a sweep (Repair), which starts another, with growing pauses. When many of them
    bring no progress, the checkout needs_review.
  - Nobody heard of the payment's final event: the same.
  - A refund of the compensation is pending: the checkout stays pending and is
    woken by the refund's end. When it fails for good, the checkout needs_review
    and an alarm fires; an operator drives it on (Resume), with another refund.
  - Two executions at once: their steps are the same; the first one's effects stand.
  - The buyer of a completed checkout was not told: Repair looks once, and has it
    done again. It is never undone for that.

What it does not do: it never reads a participant's table, and no reservation has
a timer: only the way back releases it.
*/
package checkout
