package explore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// choices decide a run: those of a path that was given, then the first way, or any.
type choices struct {
	path   []int
	at     int
	calm   int
	random *rand.Rand // decides what the path does not; nil: the first way
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
		c.path = append(c.path, way)
	}
	c.at++
	return min(c.path[c.at-1], n-1)
}

// maxCalm is how many calls of a run that is drawn go well at most before the first
// fault: about as many as a scenario has.
const maxCalm = 30

// draw are choices at random. The first calls go well, or every fault would be at
// the beginning.
func draw(run, faults int) *choices {
	random := rand.New(rand.NewPCG(uint64(run), uint64(faults)))
	return &choices{random: random, calm: random.IntN(maxCalm)}
}

// fault is a decision about what goes wrong, 0 for nothing.
func (c *choices) fault(n int) int {
	if c.random != nil && c.at == len(c.path) && n > 1 {
		if c.calm--; c.calm >= 0 {
			c.path = append(c.path, 0)
		}
	}
	return c.choose(n)
}

// pathText is a path as it is written in a replay string.
func pathText(path []int) string {
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
		c.path = append(c.path, n)
	}
	return c, nil
}
