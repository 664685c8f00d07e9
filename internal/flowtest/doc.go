/*
Package flowtest is the whole house in memory, for tests of flows: the wiring of
package bootstrap over store/memory and psptest.Fake, with a clock that stands
still until it is moved, ids that are counted, and no goroutine of its own.

A schedule is written as it is told: calls of merchants, deliveries of a PSP,
sweeps. What happens in the middle of one of them is a hook at a port:

  - World.OnCall and World.OnAnswer run something while a PSP is being called, or
    between its effect and its answer; an error there is a call lost on its way,
    or an answer lost on its way back.
  - Store.Before and Store.After do the same for a write to the table.
  - Line.Hold keeps a request in the air until Line.Arrive.
  - World.Die ends a process at that point; World.Crash says which.

Every world checks at its end what must hold in every step of every payment (see
World.Check), so a test says only what is special about it.
*/
package flowtest
