/*
Package sagatest is the order saga in memory, for its tests: the world of package
flowtest with the three participants on tables of their own, the deployed state
machine on the embedded interpreter, and the relay that wakes checkouts. It has no
goroutine of its own but the interpreter's, and no time passes but the clock's:
retries of the state machine do not wait.

Executions that were started wait in a line until Settle or RunNext runs them, one
after the other. What happens in the middle of one is a hook:

  - World.Around stands around each invocation of a function: it may lose the
    invocation or its answer, or run another execution there.
  - The hooks of flowtest do the same for writes to the payments table and calls of
    the PSP.
  - World.Deaf lets the stream of the table run dry: nobody hears of what was
    committed but the sweep.

Every world checks at its end what must hold of every checkout (see World.Check).
*/
package sagatest
