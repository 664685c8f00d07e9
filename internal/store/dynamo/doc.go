// Package dynamo is a store.Table in DynamoDB.
//
// # Requests
//
// One write is a PutItem, UpdateItem or DeleteItem with a condition; several, and
// a lone Check, are a TransactWriteItems. Each asks for the item that refuses it
// (ALL_OLD), so a refusal costs no second trip. An Update names the attributes it
// changes and leaves the others alone. Attribute names always stand behind
// placeholders, since many are reserved words.
//
// # Lost answers
//
// A request whose answer is lost may have been carried out, and is sent again,
// byte for byte, by this package or by a retrying client below it. Four things
// keep that from being seen:
//
//   - Each call of Write draws a token. Puts and updates stamp it on the item as
//     its writer. A condition refused by an item that carries our own token was
//     refused by our own success, and is reported as success.
//   - A transaction carries the token as its ClientRequestToken, by which DynamoDB
//     answers a repeat within ten minutes like the first. The same token is used
//     for identical repeats only, never for another call.
//   - An update that adds to numbers requires that the item's writer is not its
//     token, so that it is never added twice in a row. Where the caller's own
//     condition would let it happen again after somebody else's write, that is
//     with no condition at all, it is not repeated after a lost answer.
//   - After a lost answer, a plain write refused by an item with another writer, or
//     by no item, proves nothing: ours may have happened and been overtaken. It is
//     reported as store.ErrUnavailable, whose outcome is unknown, never as a
//     store.ConditionError, which says that nothing was written.
//
// The last two need to know of every lost answer. NewClient therefore makes clients
// that never repeat a request themselves; this package does. With a client that
// does repeat, the first two hold.
//
// # Repeats
//
// Conflicts with other transactions and throttling changed nothing and are sent
// again after a full-jitter pause, up to maxAttempts. A lost answer, a 5xx or a
// time-out is sent again up to maxLost times. Both end early when the pause would
// outlast the context's deadline, and end as store.ErrUnavailable.
//
// A transaction may be canceled for several reasons at once. A failed condition
// beside a conflict or throttling is not believed: the conflicting transaction may
// be about to change just that item, and the caller decides by the items it is
// shown, so all of them should be from one moment without a conflict. The
// transaction is sent again; if conflicts outlast the attempts, the refusal is
// reported after all, because nothing was written either way.
//
// # What it does not do
//
// It doesn't add beyond 64 bits with care: DynamoDB would store the sum, and this
// package would then refuse to read the item.
package dynamo
