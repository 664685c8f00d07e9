/*
Package explore runs the product's own flows under a scheduler that decides
everything: who makes the next call of a port, and what goes wrong with it. It is a
tool for tests and for the program run; nothing of the product imports it.

# How it works

An actor is one process: an invocation of a function, the network, the clock, the
customer. It is a coroutine that stops at each call of a port (the tables, the
provider, the state machine, the bus). A tree of decisions says which actor goes
next and which fault its call has: the process dies before or after the effect; the
call is lost; it takes effect and the answer is lost; it arrives later, when the
network says so; it was throttled; its repeat by the client library is told that the
condition fails on its own item; the index shows what was before. Time stands still
until the clock goes, ids depend on the actor alone, and nothing runs beside: a
failure prints one string that replays it.

A process runs over a world of its own, which is empty, and learns of the explored
one by the answers to its calls alone. So it is a function of what it is told, and of
the time where it looks at the clock: its code runs once for each history of that, and
a world is nothing but tables, the provider, what is on its way, the time, and where in
its lives each actor stands. It is copied at each fork, with what it shares copied when
it is written. Where a process has to be brought to an old point again it is told the
same, and the search ends with a panic if it then wants something else.

The search does not go on from a state that was there before with as many faults left:
the tables without their writers' tokens, the provider, what is on its way, the time,
what clients were told, and where each actor stands that still makes calls. What an
index shows that is behind counts while a fault is left. Calls that touch what nobody
else touches are made at once, unless something is on its way. A test compares the ends
with those of a search without any of this.

# What counts as alike

Most of what an actor was told it has forgotten: it read a payment, lost a race, and
read it again. By all it was told, one point of its code is thousands of states from
which it goes on in the same way. Which of them are one is learnt, as an automaton is
learnt from queries. Two points count as alike when all that can be seen of them is
the same (the call with its content, where in the code, with all callers, it is made,
and how often in a row), and when every trial goes the same way for both: a trial is a sequence of
answers that has told such points apart before. After each search what counted as
alike is doubted in three ways:

  - each point that counts as like another is told all that the other was told, and
    must come to what that came to, by the trials too;
  - the runs to each different end, to each violation, and many others are lived once
    more in full, with every life told from its beginning, and every actor must do at
    each step what the search said;
  - so are runs that are drawn from the whole tree.

The first difference on a way becomes a trial, and the search begins anew, until there
is none. So no violation is reported and no end is counted that did not happen in
full. That no end is missing is not proved by this, it is tested: for a dozen
scenarios, against a search in which no two points are alike.

After each run that ends in another world than all before, the world is finished
without faults in three ways: by everything, by webhooks alone, by the reconciler
alone. Then every invariant must hold. Webhooks alone owe that money the provider
told of is recorded; the reconciler owes everything.

A search that cannot be finished within the bound on runs sees one corner of the tree;
some of its runs are drawn from the whole of it instead.

# What it is not

A crash of the saga's function ends the whole execution, and the sweep starts
another: that is harder than the state machine's own repetition. An invocation, and
a request on its way, lives for less than half a day. In the scenario of an abandoned
checkout the half hour goes by when nothing else runs. Rules of time that the flows
take from the context's deadline are tested elsewhere.

# Invariants

S is held at every step or answer, L when a world has recovered.

	S-AMOUNT-FIXED             nobody is charged another amount than the one asked for
	S-ANSWER-TRUE              an end that a client was told is committed
	S-CANCEL-MEANS-NO-CHARGE   what is canceled holds no money that nobody knows of
	S-CHARGE-ONCE              a buyer is charged once for a payment, an order has one payment at a time
	S-EVENT-AUTH               nothing is written for a delivery that its provider did not send just now
	S-FAILED-MEANS-DECLINED    what failed holds no money
	S-FENCE-MONOTONE           no old lease comes back
	S-IDEM-SAME                one key, one payment, one refund
	S-KEEP-UNKNOWN             what newer code wrote is kept
	S-KEY-STABLE               one key at the provider for one thing
	S-KEY-WINDOW               no key is sent past half its life
	S-NO-PAN                   no card number in anything stored, logged, told or answered; a payment method in its payment alone
	S-NO-PHANTOM               what is captured is there
	S-OUTBOX-ATOMIC            each version has its event, in one transaction
	S-REFUND-BOUND             no more goes back than was taken, no refund twice
	S-SCOPE                    nobody reads or changes another merchant's payment
	S-SECRET                   a redirect is shown while the customer must act, and kept nowhere else
	S-STOCK-CONSERVED          no piece appears, vanishes or is promised twice
	S-TERMINAL-STABLE          what is over is over, but for money that goes back
	S-VERSION-MONOTONE         versions go up by one
	L-GUARD-FREED              an order whose payment came to nothing can be paid again
	L-LEASE-FREE               nobody keeps a lease
	L-NO-LOST-MONEY            money that was taken is recorded, or goes back
	L-OUTBOX-DELIVERED         every event reaches the bus
	L-RECON-CONVERGES          a second sweep changes nothing
	L-REFUND-DONE              no refund stays pending, late money is gone
	L-SAGA-ENDS                a checkout ends with money, stock, order and notice that agree
	L-STOCK-FREED              no stock is held after the end, what is sold was bought
	L-TERMINATES               every payment ends, or a person was called
	L-WEBHOOK-DRAINED          no notification waits for ever

# Defects

Mutants are deliberate defects between the flows and their ports. Each must be
caught by an invariant that it names, or the build fails: that is the proof that the
invariants look. Baselines are other designs under the same scheduler.

# Faults

What can go wrong, what must come of it, and the tests of it. A test in the package's
own suite fails when a test that is named here is gone.

Client

	1  same key while the first is in flight → 409 and Retry-After, one create: TestARepeatWhileTheFirstIsInFlightIsAskedToWait, TestOneKeySentAtOnceMakesOneCharge
	2  same key after the end → the resource as it is now: TestAReplayShowsTheResourceAsItIsNow, TestARepeatAfterTheEndIsTheSameResource
	3  same key, other body → 422 without effect: TestAnotherBodyIsRefusedAlsoInFlight, TestSameKeyOtherBodyIsRefusedWithoutEffect
	4  same order under two keys → one live payment: TestParallelRequestsForOneReferenceChargeOnce, TestAReferenceIsHeldWhileItsPaymentLivesOrIsCaptured
	5  client gone after the commit → a repeat reads the result: TestAnImpatientBuyerIsChargedOnce
	6  cancel while paying → void first, or captured: TestACancelWhileTheChargeIsOnItsWayTakesEffectWithTheAnswer, TestACancelThatRacesACaptureLeavesItCaptured
	7  double click on cancel or refund → one effect: TestTwoCancelsAreOneVoid, TestTwoRefundsAtOnceDoNotExceedTheCapture
	8  key again after its time → the reference still guards: TestAKeyIsForgottenAfterItsTime, TestAKeyDoesNotExpireWhileItsPaymentIsOpen

Gateway and function

	 9  the gateway gave up, the function goes on → versions: TestAFunctionThatTimedOutGoesOnAndStillWrites, TestEveryScheduleHolds
	10  killed at any call → found and finished: TestACrashAnywhereIsMadeGoodByTheSweep, TestEveryScheduleHolds
	11  invoked again without an error → idempotent: TestAnotherExecutionMayRunAnywhere, TestAFinishedItemIsNotAppliedAgain
	12  an event dropped → the reconciler: TestALostNotificationIsFoundByTheSweep, TestAPaymentWhoseWebhookIsLostForGoodIsCapturedByTheSweep
	13  frozen past the lease → fence and version: TestAfterItsLeaseRanOutAWorkerAsksThePSPNothing, TestSchedule11ALostFenceDoesNotRefuseTheTruth
	14  cannot start → says why, no effect: TestF14_AFunctionThatCannotStartNamesEverySettingAndCallsNobody, TestF14_AFunctionThatCannotStartEndsWithOneLineThatSaysWhy
	15  concurrency limit → no partial effect: TestF15_AnInvocationRefusedByTheConcurrencyLimitIsRepeated, TestF15_AnExecutionThatTheConcurrencyLimitEndsIsFinishedByTheSweep
	16  out of memory within a transaction → whole or nothing: TestF16_AProcessKilledWithinATransactionHasSentAllOfItOrNothing, TestEveryScheduleHolds, TestACommitIsWholeOrNothing
	17  a process serves many requests → nothing is shared: TestRunsOfOneMachineDoNotTouchEachOther, TestPaymentSharesNothingWithItsMakers
	18  little time left → no call that cannot be recorded: TestACallLeavesTimeToWriteItsOutcomeDown, TestASweepEndsBeforeItsTimeDoes

DynamoDB

	19  throttled → bounded repeats with jitter, no compensation: TestF19_ThrottlingIsRepeatedThenUnavailable, TestThrottlingIsBounded
	20  conflict or refusal → repeated, or read again: TestF20_ConflictIsRepeatedAndRefusalIsNot
	21  own write refused → the token says success: TestF21_OwnWriteRefusedIsASuccess, TestEveryScheduleHolds
	22  own transaction refused → the same: TestF22_OwnTransactionRefusedIsASuccess, TestTheTokenIsKeptInRepeatsAndNewInTheNextWrite
	23  what no repeat can heal → not repeated: TestF23_WhatNoRepeatCanHealIsNotRepeated
	24  transaction in progress → waited for: TestF20_ConflictIsRepeatedAndRefusalIsNot
	25  lands after the time-out → a version or the token decides: TestF25_ALostAnswerIsNeverAConditionError, TestACommitWhoseAnswerIsLostIsSettledByTheKeyOrTheSweep
	26  old reading → never for decisions, answers, secrets: TestF26_AReadIsConsistent, TestEveryMutantIsKilled
	27  index is behind → read again before acting: TestASweepDoesNotBelieveTheIndex, TestAListPassesOverWhatTheIndexHasWrong
	28  deleted late or early → conditions compare the time: TestARecordThatTheTableDeletedIsNoObstacle, TestARecordOutlivesTheLongestDoubt
	29  removal by expiry in the stream → no event: TestF29_AnExpiryIsToldFromARemoval
	30  a record twice → dropped by its id: TestAnEventsIDIsTheSameWhereverItsRowIsSeen, TestAnEventIsDeliveredOnceHoweverOftenItIsAnnounced
	31  a poison record → split off, bounded, reported: TestAPoisonRecordIsSplitOffAndDiscardedAlone, TestABatchThatIsTooOldIsDiscardedWhateverItsAttempts
	32  stream away for a day → due dates: TestEveryScheduleHolds, TestANotificationThatIsStoredIsItsParticipants

Step Functions

	33  a task again after its success → idempotent: TestACutOffCommandIsFinishedByItsRepeat, TestSimultaneousExecutionsMakeOneOrder
	34  a task timed out and still runs → versions: TestAChargeStepThatIsCutOffIsFoundOut, TestAFunctionThatTimedOutGoesOnAndStillWrites
	35  the same name → a counter in it: TestANameThatExistsIsASuccessAndNothingElseIs, TestSchedule04AWakeUpIsNotSwallowed
	36  driven again days later → no old key is sent: TestSchedule08AKeyIsNotSentAgainPastHalfItsLife
	37  a compensation fails midway → repeated, then a person: TestACompensatingRefundThatFailedIsFollowedByAsManyAsAreAllowed, TestAFailureThatLastsEndsWithAPerson
	38  a catch-all hides a defect → by name only: TestErrorsLeadToCompensationOnlyByName, TestEachStateCatchesWhatItsCommandTells
	39  large input → ids and bounded fields: TestAnOutputMayHaveExactly256KiB, TestArgumentsBeyondTheQuotaAreNotSent
	40  definition changed under way → handlers read the state: TestExecutionsMayInterleaveInAnyWay

Queues and bus

	41  at least once → idempotent: TestARowThatCouldNotBeCarriedComesAgain, TestOrderAndRepetitionDoNotMatter
	42  two workers → lease and version: TestOneOfTwoTakersGetsTheLease, TestTwoSweepsAtOnceDoEverythingOnce
	43  a part of a batch fails → that part again: TestAPartialFailureRepeatsOnlyTheFailedAndWhatFollowsIt
	44  redriven days later → as 36: TestAQuarantinedEventIsAppliedByAReplay
	45  duplicates and disorder → versions: TestEveryOrderAndRepetitionIsLegal, TestAnswerAndEventsEndTheSameInEveryOrder
	46  target gone → sent again: TestEventsThatNeverGotOutAreSentAgain, TestWhatABusRefusedForTwoDaysIsSentAgain, TestWhatFailsIsToldForEachEvent

PSP

	47  time-out, lost, applied or late → unknown, looked up: TestAPaymentInDoubtIsFoundOutByTheSweep, TestEveryScheduleHolds
	48  an error stored under the key → looked up: TestAStoredErrorComesAgain, TestServerErrorIsStoredWhileALookUpTellsTheTruth
	49  an error not stored → looked up first: TestWhatThePSPNeverGotIsSentAgainUntilTheDeadlineAndThenCanceled, TestOnceIsOncePerKey
	50  key expired → not sent again: TestSchedule08AKeyIsNotSentAgainPastHalfItsLife, TestAForgottenKeyChargesAgain
	51  webhook before the answer → the same end: TestWebhookFirstIsDeliveredBeforeTheAnswer, TestEveryScheduleHolds
	52  webhook twice → applied once: TestTwentyDeliveriesAtOnceAreOneTransition, TestWebhookTwiceIsThreeTimesForEveryEvent
	53  out of order → old news: TestReversedWebhooksOvertakeTheAuthorization, TestOldNewsIsAppliedAndChangesNothing
	54  success after the end → goes back once: TestLateMoneyGoesBackOnceHoweverOftenItIsTold, TestSchedule01DeadAndForgotten
	55  dispute, reversal → kept apart from the status: TestDisputesOpenAndClose, TestSchedule09Toggles
	56  part of the amount, refund at the PSP → by amounts: TestAPartialCaptureReleasesTheRest, TestARefundMadeAtThePSPCounts
	57  refund fails or is pending → followed, then a person: TestRefundsArePendingThenFail, TestSchedule08ALostRefundPastHalfItsKeysLifeWaitsForAPerson
	58  other money → quarantined, in doubt: TestASignedSuccessOfOtherMoneyIsQuarantined, TestWhatDisagreesIsQuarantinedAtOnce
	59  unknown word → acknowledged, never guessed: TestUnknownEventIsIllegal, TestSignedNonsenseIsAcknowledgedAndQuarantined
	60  PSP down → asked ever less, nothing fails: TestAPSPThatIsDownForHoursIsAskedLessAndLessAndNothingFails
	61  "not found" too early → no proof: TestNotFoundTooEarlyIsNoProof, TestASilenceAskedForTooEarlyIsNoProofWhenItsAnswerComesLate

Webhook security

	62  rotation → both secrets in the window: TestARetiredSecretVerifiesInItsWindowOnly
	63  replay outside the tolerance → 401: TestAStaleOrFutureDeliveryIsRefused
	64  another's signature → 401: TestADeliveryThatIsNotThePSPsIsRefused
	65  body re-encoded → raw bytes: TestTheExactBytesVerifyAndNoOthers, TestADeliveryInBase64IsDecodedBeforeItsSignatureIsChecked
	66  no secret, unknown key → refused: TestWithoutASecretEveryDeliveryIsRefused, TestWithoutAUsableSecretNothingIsPosted

Time, deployment, input

	67  clocks apart → conditional writes, symmetric tolerance: TestAStaleOrFutureDeliveryIsRefused, TestALeaseIsTakenOnceUntilItRunsOut
	68  clock back → versions order things: TestEachChangeIsOneVersionWithItsRow, TestAnswerToAnOlderSendingIsOldNews
	69  old and new code → unknown attributes are kept, unknown words parked: TestUnknownAttributesSurviveEveryUpdate, TestAStatusOfNewerCodeIsParked, TestEveryScheduleHolds
	70  rolled back → the same: TestUnknownFieldsAreIgnored, TestAKindOfNewerCodeIsLeftAlone
	71  huge, deep, odd bodies → refused: TestABodyIsReadStrictly, FuzzBody
	72  poison message → bounded attempts, the rest flows: TestAnItemThatKeepsFailingIsTriedEverMoreRarelyAndQuarantined, TestAPoisonPaymentDoesNotStarveTheOthers
*/
package explore
