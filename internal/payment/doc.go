/*
Package payment is the payment state machine. It is pure: no clock, no network,
no storage, so that every rule about money can be read and tested here alone.

What the package guarantees:

  - A pair of status and event that is not in the table is refused.
  - Every order and every repetition of what a PSP says of one charge ends in
    the same payment as its merchant sees it, times and version aside. Old news
    changes nothing, not even the version. Three things stay as they were told
    first: refunded, when a full refund fails after it succeeded; dead, when the
    PSP contradicts itself; and why the PSP ended a payment that nobody canceled,
    which is authorization_expired only when we knew before that funds were held.
  - Amount and currency never change; what a PSP says of other money is refused
    with a *MismatchError before anything is changed.
  - After a cancel was requested, or past ExpiresAt, EventSent is illegal: no
    charge leaves any more.
  - EventAbsent ends a payment only after a cancel was requested, and only while
    the PSP has told us nothing of the charge. A void follows a cancel, too.
  - A charge of other money is never believed as success, and can still end.
  - Money captured for a dead payment adds exactly one refund, with an id derived
    from the payment.
  - A key is sent again unchanged until the PSP gave a final answer to it.
  - That a call was refused, did not run or had no answer counts only for the last
    sending of the last key, and only until the PSP has told of it.
  - Only View leaves the package, and only in StatusRequiresAction can it hold a
    redirect address or a client secret. Apply erases both when the status changes.

What fails, and what then: see table.go for each pair, Look for when somebody
must look again, Next and NextAfterLookUp for what they must do.

What it does not do: it has no clock and no storage, and it believes the version
that it is given. Package journal makes a change atomic.
*/
package payment
