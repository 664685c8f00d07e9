package explore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// choices walks a tree of decisions depth first. A run is repeated from its start
// for every leaf: path is the prefix that it repeats, widths the branching at each
// of its depths.
type choices struct {
	path, widths []int
	at           int
	calm         int
	random       *rand.Rand // decides what the path does not; nil: the first way
}

// choose is the next decision among n. What has but one way is no decision.
func (c *choices) choose(n int) int {
	if n <= 1 {
		return 0
	}
	if c.at == len(c.path) {
		way := 0
		if c.random != nil {
			way = c.random.IntN(n)
		}
		c.path, c.widths = append(c.path, way), append(c.widths, n)
	}
	if c.widths[c.at] == 0 { // a path that was given
		c.widths[c.at] = n
	}
	c.at++
	return min(c.path[c.at-1], n-1)
}

// maxCalm is how many calls of a run that is drawn go well at most before the first
// fault: about as many as a scenario has.
const maxCalm = 30

// fault is a decision about what goes wrong, 0 for nothing. In a run that is drawn
// the first calls go well, or every fault would be at the beginning.
func (c *choices) fault(n int) int {
	if c.random == nil || c.at < len(c.path) {
		return c.choose(n)
	}
	if c.calm--; c.calm >= 0 {
		c.path, c.widths = append(c.path, 0), append(c.widths, n)
		c.at++
		return 0
	}
	return c.choose(n)
}

// fresh reports whether the run is past the prefix that it repeats.
func (c *choices) fresh() bool { return c.at >= len(c.path) }

// next moves on to the next leaf, and reports whether there is one.
func (c *choices) next() bool {
	for i := len(c.path) - 1; i >= 0; i-- {
		if c.path[i]+1 < c.widths[i] {
			c.path[i]++
			c.path, c.widths, c.at = c.path[:i+1], c.widths[:i+1], 0
			return true
		}
	}
	return false
}

// String is the path as it is written in a replay string.
func (c *choices) String() string {
	path := c.path
	for len(path) > 0 && path[len(path)-1] == 0 {
		path = path[:len(path)-1] // what is not said is 0
	}
	parts := make([]string, len(path))
	for i, n := range path {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}

func parseChoices(text string) (*choices, error) {
	c := &choices{}
	if text == "" {
		return c, nil
	}
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("explore: %q is no decision", part)
		}
		c.path, c.widths = append(c.path, n), append(c.widths, 0)
	}
	return c, nil
}
