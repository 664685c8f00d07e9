/*
Package charge talks to the PSPs: it makes charges, captures, voids and refunds
them, and finds out what became of what had no answer.

What it guarantees:

  - A charge is sent under one key, the payment's id; a refund under its own id;
    a capture or void under a number of its own, and the next only after the PSP
    refused the one before.
  - The intent is committed before every call, the first and every repeat, and the
    answer is recorded after it whatever became of the caller or of his lease.
  - What had no usable answer stays in doubt. It is settled by what the PSP says
    of the charge, or by sending the same bytes again under the same key while
    that is young; never by a new key, and never by our clock alone.
  - A success for a payment that is dead goes back once.

A request finds its earlier self by the idempotency record (see package
idempotency) and renders the payment as it is now. It sends again only what its
first request left on the way when it died, or what the PSP said it did not run.

Drive is where everything unfinished is finished: under the payment's lease, one
step after the other, until nothing is owed or only time can tell. The sweep, a
merchant's cancel, a saga and a webhook's follow-up all come through it.

What fails, and what then:

  - The store gave no answer to an intent: nothing is sent. If the intent is there
    all the same, the key's next request or the sweep goes on with it.
  - The process dies between intent and call, or between call and record: the
    operation stays sent, until the key is taken over or the sweep looks it up.
  - The answer is about other money or another charge: it is believed neither as
    success nor as failure, and somebody is called.
  - The PSP is down, or no longer configured: looks and repeats get ever rarer.

What it does not do: it decides no status (package payment does), and it knows
nothing of a checkout but the condition that a change is bound to.
*/
package charge
