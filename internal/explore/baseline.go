package explore

// baselines are scenarios of other designs.
func baselines() []Scenario { return nil }
