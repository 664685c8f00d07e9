package telemetry_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/telemetry"
)

func TestCountIsOneLineOfEmbeddedMetricFormat(t *testing.T) {
	var out bytes.Buffer
	m := &telemetry.Meter{W: &out, Now: func() time.Time { return time.UnixMilli(1700000000123) }}
	m.Count("VersionConflict", 2)
	m.Count("Nothing", 0)
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 {
		t.Fatalf("got %d lines, want 1:\n%s", n, out.String())
	}
	var line struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		} `json:"_aws"`
		VersionConflict int64
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	m0 := line.AWS.CloudWatchMetrics[0]
	if line.VersionConflict != 2 || line.AWS.Timestamp != 1700000000123 || m0.Namespace != "Kessai" ||
		m0.Metrics[0].Name != "VersionConflict" || m0.Metrics[0].Unit != "Count" || len(m0.Dimensions) != 1 {
		t.Errorf("got %+v, want a metric named VersionConflict with value 2", line)
	}
}
