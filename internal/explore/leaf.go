package explore

import (
	"fmt"
	"slices"
	"strings"
)

// leaf holds the end of a run to what must hold, and recovers from one that is not
// the end of another run too.
func (x *explorer) leaf(w *world) {
	x.result.Runs++
	if x.judge(w, "") {
		return
	}
	end := w.digest()
	if _, seen := x.ends[end]; seen {
		return
	}
	x.sample = append(x.sample, slices.Clone(x.path))
	x.ends[end] = struct{}{}
	for r := byAll; r <= byReconciler; r++ {
		again := w.clone()
		again.wire()
		again.finish(r)
		if x.judge(again, " (recovery: "+r.String()+")") {
			return
		}
	}
}

// finish recovers the world and holds it to what is owed then.
func (w *world) finish(r recovery) {
	if w.scenario.End != nil {
		w.land()
		w.scenario.End(w, r)
		return
	}
	w.recover(r)
	w.checkEnd(r)
}

// judge keeps the first violation of each invariant.
func (x *explorer) judge(w *world, when string) bool {
	if len(w.violations) == 0 {
		return false
	}
	x.result.Violating++
	for _, v := range w.violations {
		if slices.ContainsFunc(x.result.Violations, func(k Violation) bool { return k.Invariant == v.Invariant }) {
			continue
		}
		v.Replay, v.Detail = x.replay(), v.Detail+when
		x.result.Violations = append(x.result.Violations, v)
		x.sample = append(x.sample, slices.Clone(x.path))
	}
	return true
}

func (x *explorer) replay() string {
	mutant := ""
	if x.scenario.mutant != nil {
		mutant = x.scenario.mutant.Name
	}
	return fmt.Sprintf("%s@%d/%s:%s", strings.ReplaceAll(x.scenario.Name, " ", "_"), x.options.Faults, mutant, pathText(x.path))
}
