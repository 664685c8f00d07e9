/*
Package delivery brings a merchant's events to the merchant's own server, and
keeps a feed of them for those who missed some.

Each merchant may have one endpoint: an address and the types it wants. The relay
hands every event to Announce, which puts it into the merchant's feed and, when
the endpoint wants it, makes a delivery: one per event, whatever is announced how
often. A delivery is posted with a Standard Webhooks signature. Its message id is
the event's id, so that the merchant drops repeats by it.

	pending → succeeded        a 2xx came
	pending → failed           for GiveUpAfter nothing but failures; the endpoint is disabled, with an alarm

What fails, and what then:

  - The merchant's server refuses, is slow or away: tried again with back-off.
  - The worker dies after the post: posted again. At least once, never lost.
  - An endpoint is disabled: its deliveries wait for nobody; events stay in the
    feed, and Redeliver makes a delivery pending again, by event or by time.

An address is followed only where it may lead: https outside local runs, never to
a private, loopback or link-local address after its name was resolved, never
through a redirect (webhookclient).
*/
package delivery
