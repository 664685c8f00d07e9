// Package telemetry is how the product tells what it does: JSON log lines with
// log/slog, and counters in CloudWatch's embedded metric format, which is a log
// line too and costs no call.
//
// Format: CloudWatch Embedded Metric Format Specification.
package telemetry

import (
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Namespace is where every metric of the product is.
const Namespace = "Kessai"

// Logger writes JSON lines of at least that level. Times are UTC.
func Logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// Meter counts. Each Count is one line of the embedded metric format without
// dimensions, so that an alarm sees the product as a whole. Safe for concurrent use.
type Meter struct {
	W   io.Writer
	Now func() time.Time

	mu sync.Mutex
}

type emf struct {
	AWS struct {
		Timestamp int64        `json:"Timestamp"` // Unix milliseconds
		Metrics   []emfMetrics `json:"CloudWatchMetrics"`
	} `json:"_aws"`
}

type emfMetrics struct {
	Namespace  string      `json:"Namespace"`
	Dimensions [][]string  `json:"Dimensions"`
	Metrics    []emfMetric `json:"Metrics"`
}

type emfMetric struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// Count adds n to a counter. A line that cannot be written is lost: a metric
// never stops a payment.
func (m *Meter) Count(name string, n int64) {
	if n == 0 {
		return
	}
	var head emf
	head.AWS.Timestamp = m.Now().UnixMilli()
	head.AWS.Metrics = []emfMetrics{{Namespace, [][]string{{}}, []emfMetric{{name, "Count"}}}}
	line, err := json.Marshal(map[string]any{"_aws": head.AWS, name: n})
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.W.Write(append(line, '\n'))
}

// Discard is a meter for a local run, whose numbers nobody looks at.
type Discard struct{}

// Count does nothing.
func (Discard) Count(string, int64) {}
