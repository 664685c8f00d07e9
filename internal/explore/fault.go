package explore

// fault is what goes wrong at one call of a port.
type fault int

// Faults of a call.
const (
	none        fault = iota
	crashBefore       // the process dies before the call leaves
	crashAfter        // the process dies after the call took effect
	lost              // no answer, no effect
	applied           // no answer, took effect
	late              // no answer; takes effect when the network says so
	throttled         // refused before any effect, and said so
	refused           // took effect; the repeat by the client library is told that its condition fails
	stale             // the index shows what was before the last write
)

var faultNames = [...]string{"", "crash before", "crash after", "lost", "applied, answer lost", "arrives late", "throttled", "own write refused", "stale index"}

func (f fault) String() string { return faultNames[f] }

// Which faults a kind of call can have. A read has no effect that could be in doubt.
var (
	readFaults  = []fault{none, crashBefore, lost}
	indexFaults = []fault{none, crashBefore, lost, stale}
	writeFaults = []fault{none, crashBefore, crashAfter, lost, applied, late, refused}
	askFaults   = []fault{none, crashBefore, lost}                                       // a look-up
	sendFaults  = []fault{none, crashBefore, crashAfter, lost, applied, late, throttled} // what moves money
	startFaults = []fault{none, crashBefore, crashAfter, lost, applied}                  // of an execution, of an event on the bus
)
