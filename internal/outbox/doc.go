/*
Package outbox carries committed journal rows out: to the event bus, and to the
sagas that wait for their payment's news.

A journal row is written in one transaction with the state that it tells of. The
table's change stream brings each row here at least once and in order per
payment. Its event has an id made of what it is about and the version, so that a
consumer drops repeats by id, orders by version, and finds gaps by it.

# What fails and what then

An event that could not be published, or whose saga could not be woken, is
reported, and its row comes again, until the stream gives it up or forgets it. What
is lost then is found without a mark on any row:

Heartbeats, a few items of the table, each in a partition of its own, are changed by
the sweep every Interval: their beats are numbered. A beat comes through the stream
behind the rows that were committed before it, and after its batch was carried out
without a failure the relay notes it as seen: the watermark. A beat that does not
follow the last one seen says that something of the stream never came, so there is a
gap from that one to this. Numbers are compared, not times: while no sweep runs there
are no beats, and nothing seems lost.

	old beat again, redelivered     nothing: seen only rises
	batch with a failure            no beat of it is seen; all of it comes again
	beat given up with its batch    the next beat opens the gap
	first beat of all               follows the making of its heartbeat

A heartbeat tells of its own part of the stream alone, and a batch that was given up
may hold none. So a batch that still fails after stuckAfter opens a gap by itself,
from its oldest event until now, and goes on widening it: one write for each attempt,
while there is trouble and only then.

A gap is one item, the recovery. Another gap is merged into it, and what is wider
than it was begins anew. It rests for settle after it was last opened, so that the
gaps of all heartbeats come together and trouble is over; then the sweep goes through
the whole table, page by page, and brings each journal row of that time back into the
stream. It notes where it stands after every page. Two sweeps on one recovery do no
harm: the slower one's note is refused. Rows go the same way as ever, under the ids
they have: the merchants' feeds and deliveries know what they have got, sagas look
where they stand, and consumers of the bus drop what they know. So all rows of the
gap are sent, whether some of them got out or not.

An operator may open a gap by hand (Resend), for a time that is known to be lost.

# What it does not do

What can never be carried out is not sent for ever: what was brought back maxAgain
times and still fails opens no gap any more. It is in the queue of what left the
stream, with an alarm. A part of the stream without a heartbeat, that nobody reads
while all others are read, is not noticed: what stops the relay stops it everywhere.
Order across a recovery is that of versions, not of arrival.
*/
package outbox
