// Package memory is a store.Table in one process: for tests, the fault explorer
// and a local run. It passes the contract suite that DynamoDB passes
// (store/storetest), refuses what DynamoDB refuses, and keeps nothing on disk.
//
// # Items
//
// A stored item is never changed in place: a write builds a new one, so readers
// copy without holding the lock. One lock makes every Write a transaction; the
// index IndexDue is kept within it and is therefore never behind, which no caller
// may rely on.
//
// # Changes
//
// Subscribe hands committed changes to a handler the way a stream mapping feeds a
// Lambda function: asynchronously, in batches, at least once. Changes wait in one
// lane per partition; at most one batch holds changes of a lane, so as long as
// nothing fails a partition's changes arrive in the order of their commits. A
// change that fails holds back only the later changes of its own key: it is
// delivered again alone, after a growing, jittered pause, and after the last
// attempt handed to Options.OnFailure and left behind. When a batch fails as a
// whole, each of its keys is delivered alone at once, to find the one at fault. So
// a poison change never blocks another key, and the order per key holds always.
//
// A subscription begins with the first change after it. Nothing survives the
// process: what was not carried out at Close is gone, like the items.
//
// # Expiry
//
// An item past expires_at stays until somebody calls Expire. DynamoDB deletes
// days late; nothing may rely on either.
package memory
