// Package stream carries the records of a DynamoDB stream to a Lambda function as an event source mapping of AWS does.
//
// The emulator has mappings of its own, but they take a partial batch response for a success, so a record that a
// function reported as failed is never delivered again; they never split a batch, and know no number of attempts.
// A payment system that is only ever seen on such a stream is not seen at all. So the launcher switches the emulator's
// mappings off and runs these, built from the very same settings, which it reads back from the emulator.
//
// What holds, after the [developer guide]:
//
//   - Records reach the function at least once. Those of one partition key are in order, whatever the parallelism.
//   - Records that no filter matches are never delivered.
//   - A batch fails when the function fails, times out, or names an item of it in batchItemFailures. Then everything
//     from the first named item on is delivered again, after a pause that doubles.
//   - With bisect, a batch that made no headway is split in two, and a split costs no attempt. So a poison record ends
//     up alone, and neither blocks its neighbours nor takes them with it.
//   - A batch that has used up its attempts or is too old leaves for the failure queue, as the sequence numbers of its
//     records and not as the records themselves.
//   - A call that never reached the function, or was throttled, is made again without counting.
//
// What does not: nothing survives the process, and a stream has one shard. A launcher lives no longer than its tables.
//
// [developer guide]: https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html
package stream
