// Package psptest is what tests of payment service providers (PSPs) share: the
// contract that every psp.Provider passes (Run), a provider in memory for tests
// of flows (Fake), and signers of each webhook scheme.
//
// The Fake has no network, no clock and no goroutine: the same calls in the same
// order give the same ids and the same events, so that a schedule that breaks
// something can be run again. It is honest about what providers do: it keeps the
// first answer for a key and refuses the key for other content, makes a second
// charge when it is given a second key, tells of everything by events whose
// order is the test's to choose, and can be told to lose a request before its
// effect or an answer after it.
package psptest
