package storetest

import (
	"errors"

	"github.com/kessai/kessai/internal/store"
)

// AnswerLoser is a table under test whose next write can be made to be carried
// out and its answer lost.
type AnswerLoser interface {
	// LoseAnswer arms the fault. Below the adapter, a client repeats the request and
	// the adapter sees the second answer only; otherwise it sees an error. The
	// function, if any, runs after the write took effect.
	LoseAnswer(below bool, meanwhile func())
}

var lostAnswerClaims = []claim{
	{"a write that succeeded unseen is a success", eitherWay(ownWrites)},
	{"a transaction that succeeded unseen is a success", eitherWay(ownTransaction)},
	{"an addition is never made twice", eitherWay(ownAddition)},
	{"a conditional delete is never called refused when it may have happened", ownDelete},
	{"a write overtaken after its lost answer is never called refused", overtaken},
	{"a transaction overtaken after its lost answer is a success", eitherWay(overtakenTransaction)},
	{"a refusal of somebody else's item stays one", foreignRefusal},
}

// eitherWay runs a claim with the answer lost below the adapter and before it.
func eitherWay(check func(b *bench, lose func(meanwhile func()))) func(b *bench) {
	return func(b *bench) {
		loser := b.loser()
		for _, below := range []bool{true, false} {
			b.space = newSpace()
			check(b, func(meanwhile func()) { loser.LoseAnswer(below, meanwhile) })
		}
	}
}

func (b *bench) loser() AnswerLoser {
	b.Helper()
	loser, ok := b.table.(AnswerLoser)
	if !ok {
		b.Fatal("got a table that can't lose an answer, unlike the first one")
	}
	return loser
}

func ownWrites(b *bench, lose func(func())) {
	key := b.key("P", "S")
	lose(nil)
	b.mustWrite(store.Write{Kind: store.Put, Key: key, Item: store.Item{"version": int64(1)}, If: store.Absent()})
	lose(nil)
	b.mustWrite(store.Write{
		Kind: store.Update, Key: key, If: store.Equal("version", int64(1)),
		Set: store.Item{"a": "x"}, Add: map[string]int64{"version": 1},
	})
	b.wantItem(key, store.Item{"version": int64(2), "a": "x"})
	lose(nil)
	b.mustWrite(store.Write{Kind: store.Put, Key: key, Item: store.Item{"version": int64(3)}})
	lose(nil)
	b.mustWrite(store.Write{Kind: store.Delete, Key: key})
	b.wantItem(key, nil)
}

func ownTransaction(b *bench, lose func(func())) {
	state, row, gone := b.key("P", "STATE"), b.key("P", "EVENT#1"), b.key("P", "GONE")
	b.mustPut(gone, store.Item{})
	lose(nil)
	b.mustWrite(
		store.Write{Kind: store.Update, Key: state, Add: map[string]int64{"version": 1}, If: store.Absent()},
		store.Write{Kind: store.Put, Key: row, If: store.Absent()},
		store.Write{Kind: store.Delete, Key: gone, If: store.Exists()},
	)
	b.wantItem(state, store.Item{"version": int64(1)})
	b.wantItem(row, store.Item{})
	b.wantItem(gone, nil)
}

// ownAddition has no condition that could refuse a second one.
func ownAddition(b *bench, lose func(func())) {
	key := b.key("P", "S")
	lose(nil)
	err := b.write(store.Write{Kind: store.Update, Key: key, Add: map[string]int64{"n": 1}})
	if _, refused := errors.AsType[*store.ConditionError](err); refused {
		b.Errorf("got %v, want success or an unknown outcome", err)
	}
	b.wantItem(key, store.Item{"n": int64(1)})
}

func ownDelete(b *bench) {
	key := b.key("P", "S")
	b.mustPut(key, store.Item{})
	b.loser().LoseAnswer(false, nil)
	err := b.write(store.Write{Kind: store.Delete, Key: key, If: store.Exists()})
	if _, refused := errors.AsType[*store.ConditionError](err); refused {
		b.Errorf("got %v, want success or an unknown outcome", err)
	}
	b.wantItem(key, nil)
}

func overtaken(b *bench) {
	key := b.key("P", "S")
	b.loser().LoseAnswer(false, func() {
		b.mustWrite(store.Write{Kind: store.Update, Key: key, Set: store.Item{"a": "theirs"}, If: store.Exists()})
	})
	err := b.write(store.Write{Kind: store.Put, Key: key, Item: store.Item{"b": "ours"}, If: store.Absent()})
	if _, refused := errors.AsType[*store.ConditionError](err); refused {
		b.Errorf("got %v, want success or an unknown outcome: it had happened", err)
	}
	b.wantItem(key, store.Item{"a": "theirs", "b": "ours"})
}

func overtakenTransaction(b *bench, lose func(func())) {
	one, two := b.key("P", "1"), b.key("P", "2")
	lose(func() {
		b.mustWrite(store.Write{Kind: store.Update, Key: one, Add: map[string]int64{"n": 10}})
		b.mustWrite(store.Write{Kind: store.Update, Key: two, Add: map[string]int64{"n": 10}})
	})
	b.mustWrite(
		store.Write{Kind: store.Update, Key: one, Add: map[string]int64{"n": 1}, If: store.HasNo("n")},
		store.Write{Kind: store.Update, Key: two, Add: map[string]int64{"n": 1}},
	)
	b.wantItem(one, store.Item{"n": int64(11)})
	b.wantItem(two, store.Item{"n": int64(11)})
}

func foreignRefusal(b *bench) {
	key, other := b.key("P", "S"), b.key("P", "other")
	theirs := store.Item{"theirs": true}
	b.mustPut(key, theirs)
	loser := b.loser()
	mine := store.Write{Kind: store.Put, Key: key, Item: store.Item{"mine": true}, If: store.Absent()}
	loser.LoseAnswer(true, nil)
	b.wantRefusal(b.write(mine), map[int]store.Item{0: theirs})
	loser.LoseAnswer(false, nil)
	if err := b.write(mine); err == nil {
		b.Error("got nil of a write that was refused twice")
	}
	loser.LoseAnswer(false, nil)
	err := b.write(mine, store.Write{Kind: store.Put, Key: other})
	b.wantRefusal(err, map[int]store.Item{0: theirs})
	b.wantItem(key, theirs)
	b.wantItem(other, nil)
}
