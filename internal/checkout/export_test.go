package checkout

import "time"

// Apply is apply, for the table of what may follow what.
func (c Checkout) Apply(e Event, at time.Time) (Checkout, Row, bool, error) { return c.apply(e, at) }
