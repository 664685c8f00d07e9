/*
Package merchant knows merchants and API keys.

A key is "sk_test_" or "sk_live_" and 256 random bits. It is shown once, in the
answer that makes it, and stored as a SHA-256 hash only; 256 bits need no salt and
no slow hash. It belongs to a merchant, or to the operator.

A key has a prefix, enough for people to tell keys apart and useless as a key. It
works until its end, if it has one, and until it is revoked. A rotation makes a
new key and gives the older ones an end, so that both work for a while.

Each key is two rows, which change in one transaction: one by its hash, which
authenticates, and one below its merchant, which lists.

What fails, and what then:

  - The answer with a new key is lost: a repeat of the request cannot show it
    again. Make another one.
  - The store gives no answer: Authenticate says so, and the caller answers 503,
    never 401.

The operator's keys come from configuration, several while one is being replaced,
or were seeded; they belong to no merchant.
*/
package merchant
