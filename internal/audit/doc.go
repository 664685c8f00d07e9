/*
Package audit reconciles: it compares what a PSP has with what is recorded here, what
its webhooks told with what payments show, and what is recorded here with the shop's
orders and stock, reports every difference by its kind, and repairs what can be
repaired safely.

A run has three parts. The first reads the PSP's side: its own list of charges since
a time, or a settlement file; every charge is compared with its payment. The second
reads the webhook log. The third reads ours: what the merchants' feeds tell of payments
that were captured and of checkouts that ended in the period; a captured payment that
the first part did not come across is looked up at the PSP, and a checkout is held
against its order and its reserved stock. A file says of no period what it covers:
without one given, only its rows are compared.

The webhook log is the inbox: its items are in an index by status, the finished ones
at the time when they were received, so that those of a period can be read without
anything being written for it; applied and ignored ones are remembered as long as a
period may reach back. Each is read by its PSP's adapter, as when it is applied, and
its fact is put to the payment as it is now, by the same pure rules as in the journal:
what would still be recorded, or is refused, is an outcome that the payment does not
show. An applied item must leave nothing to record; an ignored or quarantined one may.
A received item counts when the sweep should have come to it, and it is no longer
waiting for a payment. That an outcome recorded here has a webhook is not asked: PSPs
lose them, and what the PSP itself says is compared anyhow.

Payments have no index by time, and none is written for this: the feed is written
for the merchants anyway, asynchronously, and merchants are listed. What the feed
forgets or has never got is compared by the first part all the same.

A difference is believed only when it is seen again: the charge is looked up and
the payment read anew, since a list is older than what happened meanwhile. What a
file or an item of the log says is never recorded; it is a reason to ask, by our own id.
A repair is one of these, each through the door that everything else takes:

  - recorded: what the PSP said when it was asked was recorded by the journal, as an
    answer to a look-up is, and followed (a late capture goes back, a dead payment's
    charge is voided).
  - driven_on: the payment was driven on under its lease, like by the sweep; or a
    received notification that nobody came to was applied by the applier of webhooks,
    like by the sweep.
  - resumed: another execution of its checkout was started, like by the sweep.

A repair counts only when the difference is gone afterwards. All else needs_review: a
person must look. Money is never moved because of a difference alone.

A run is bounded in time. It commits after every page where it stands and goes on from
there when it is driven on again: by a repeat of the request that began it. What was
done since the last commit is done again, to no further effect: findings are named by
what they are about, and repairs leave nothing to repair. So a second run changes
nothing that the first repaired, and reports again what needs review.

What fails, and what then: the PSP or the store gives no answer, and the run stays
running where it was; after too many such stops in a row it is failed, and another
may be begun. Two workers on one run do the same; the slower one's page is dropped.
A process that dies between a repair and its note may leave a finding open that is
right again; the payment's journal tells who repaired it.

What it does not do: it sends no events (those that never got out are found by the outbox); it compares no fees and no payouts, and of disputes only what
webhooks told, since no PSP is asked about them; and it reads no more than the known
columns of a file.
*/
package audit
