package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kessai/kessai/internal/store"
)

var contentionClaims = []claim{
	{"64 writers of one version have one winner", func(b *bench) { oneWinner(b, false) }},
	{"64 transactions of one version have one winner", func(b *bench) { oneWinner(b, true) }},
	{"no addition is lost or doubled", func(b *bench) { additions(b, 64, 5, false) }},
	{"no addition in a transaction is lost or doubled", func(b *bench) { additions(b, 12, 4, true) }},
	{"transfers conserve the sum", transfers},
}

// together calls f in that many goroutines that start at the same moment.
func together(n int, f func(worker int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for worker := range n {
		all.Go(func() {
			<-start
			f(worker)
		})
	}
	close(start)
	all.Wait()
}

// oneWinner is what the journal rests on: of all who saw a version, one changes
// it, and the others learn what it is now.
func oneWinner(b *bench, transaction bool) {
	const writers, versions = 64, 3
	key := b.key("P", "STATE")
	b.mustPut(key, store.Item{"version": int64(0)})
	for version := range int64(versions) {
		results := make([]error, writers)
		together(writers, func(worker int) {
			writes := []store.Write{{
				Kind: store.Update, Key: key, If: store.Equal("version", version),
				Set: store.Item{"winner": int64(worker)}, Add: map[string]int64{"version": 1},
			}}
			if transaction {
				row := b.key("P", fmt.Sprintf("EVENT#%d", version+1))
				writes = append(writes, store.Write{
					Kind: store.Put, Key: row, Item: store.Item{"winner": int64(worker)}, If: store.Absent(),
				})
			}
			results[worker] = b.write(writes...)
		})
		winner := -1
		for worker, err := range results {
			if err == nil {
				if winner >= 0 {
					b.Errorf("version %d: got winners %d and %d, want one", version, winner, worker)
				}
				winner = worker
				continue
			}
			refusal, ok := errors.AsType[*store.ConditionError](err)
			if !ok {
				b.Errorf("version %d: got %v, want a ConditionError of each loser", version, err)
				continue
			}
			if old, _ := refusal.At(0); old["version"] != version+1 {
				b.Errorf("version %d: a loser got version %v, want %d", version, old["version"], version+1)
			}
		}
		b.wantItem(key, store.Item{"version": version + 1, "winner": int64(winner)})
		if transaction {
			b.wantItem(b.key("P", fmt.Sprintf("EVENT#%d", version+1)), store.Item{"winner": int64(winner)})
		}
	}
}

func additions(b *bench, writers, each int, transaction bool) {
	one, two := b.key("P", "1"), b.key("Q", "2")
	together(writers, func(int) {
		for range each {
			writes := []store.Write{{Kind: store.Update, Key: one, Add: map[string]int64{"n": 1}}}
			if transaction {
				writes = append(writes, store.Write{Kind: store.Update, Key: two, Add: map[string]int64{"n": -1}})
			}
			if err := b.write(writes...); err != nil {
				b.Errorf("got %v, want the addition", err)
			}
		}
	})
	total := int64(writers * each)
	b.wantItem(one, store.Item{"n": total})
	if transaction {
		b.wantItem(two, store.Item{"n": -total})
	}
}

// transfers moves amounts around in a ring, never below zero.
func transfers(b *bench) {
	const accounts, workers, each, balance = 4, 8, 6, 10
	key := func(i int) store.Key { return b.key(fmt.Sprint("A", i%accounts), "BALANCE") }
	for i := range accounts {
		b.mustPut(key(i), store.Item{"n": int64(balance)})
	}
	together(workers, func(worker int) {
		for i := range each {
			amount := int64(3 + (worker+i)%7)
			from := worker*5 + i
			err := b.write(
				store.Write{Kind: store.Update, Key: key(from), Add: map[string]int64{"n": -amount}, If: store.AtLeast("n", amount)},
				store.Write{Kind: store.Update, Key: key(from + 1), Add: map[string]int64{"n": amount}},
			)
			if _, refused := errors.AsType[*store.ConditionError](err); err != nil && !refused {
				b.Errorf("got %v, want nil or a refusal", err)
			}
		}
	})
	sum := int64(0)
	for i := range accounts {
		n, _ := b.read(key(i))["n"].(int64)
		if n < 0 {
			b.Errorf("account %d: got %d, want nothing below zero", i, n)
		}
		sum += n
	}
	if sum != accounts*balance {
		b.Errorf("got a sum of %d, want %d", sum, accounts*balance)
	}
}
