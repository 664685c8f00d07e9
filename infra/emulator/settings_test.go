package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestSettingsNameEveryFaultAtOnce(t *testing.T) {
	t.Setenv("AWS_PORT", "many")
	t.Setenv("API_PORT", "70000")
	t.Setenv("PAYMENT_EXPIRY", "soon")
	t.Setenv("RECONCILE_EVERY", "-1s")
	_, err := readSettings()
	for _, name := range []string{"AWS_PORT", "API_PORT", "PAYMENT_EXPIRY", "RECONCILE_EVERY"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("readSettings: got %v, want an error that names %s", err, name)
		}
	}
}

func TestDurationsOfTheEnvironmentBecomeParameters(t *testing.T) {
	for _, d := range durations {
		t.Setenv(d.variable, "90s")
	}
	t.Setenv("RECONCILE_EVERY", "2s")
	s, err := readSettings()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range durations {
		if got := s.parameters[d.parameter]; got != "90s" {
			t.Errorf("%s: got %q, want 90s", d.parameter, got)
		}
	}
	if s.reconcileEvery != 2*time.Second || wholeMinutes(s.reconcileEvery) || !wholeMinutes(5*time.Minute) {
		t.Errorf("reconcileEvery: got %v, want 2s, which is no whole number of minutes", s.reconcileEvery)
	}
}

func TestAMappingThatLostASettingIsRefused(t *testing.T) {
	whole := map[string]any{
		"FunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:kessai-relay", "BatchSize": 10, "ParallelizationFactor": "4",
		"MaximumRetryAttempts": 5, "MaximumRecordAgeInSeconds": 60, "BisectBatchOnFunctionError": true,
		"FunctionResponseTypes": []string{"ReportBatchItemFailures"},
		"FilterCriteria":        map[string]any{"Filters": []any{map[string]any{"Pattern": `{"eventName":["INSERT"]}`}}},
		"DestinationConfig":     map[string]any{"OnFailure": map[string]any{"Destination": "arn:aws:sqs:us-east-1:000000000000:failures"}},
	}
	read := func(without string) error {
		settings := map[string]any{}
		for name, value := range whole {
			if name != without {
				settings[name] = value
			}
		}
		text, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		var found settingsOfMapping
		if err := json.Unmarshal(text, &found); err != nil {
			t.Fatal(err)
		}
		mapping, err := found.mapping()
		if err == nil && (mapping.Function != "kessai-relay" || mapping.Parallelism != 4 || !mapping.Partial || !mapping.Bisect || mapping.MaxAge != time.Minute) {
			t.Errorf("mapping: got %+v, want what the settings say", mapping)
		}
		return err
	}
	if err := read(""); err != nil {
		t.Errorf("whole mapping: got %v, want no error", err)
	}
	for _, name := range []string{"BatchSize", "ParallelizationFactor", "MaximumRetryAttempts", "MaximumRecordAgeInSeconds", "BisectBatchOnFunctionError", "FilterCriteria", "DestinationConfig"} {
		if err := read(name); err == nil {
			t.Errorf("mapping without %s: got no error", name)
		}
	}
}

func TestARecordKeepsItsBytesAndLearnsItsStream(t *testing.T) {
	body := `{"eventName":"INSERT","dynamodb":{"ApproximateCreationDateTime":1767322445.5,"Keys":{"pk":{"S":"a"},"sk":{"S":"b"}},"NewImage":{"n":{"N":"12345678901234567890.5"},"b":{"B":"AAE="}},"SequenceNumber":"7"}}`
	record, err := recordOf(json.RawMessage(body), "arn:stream")
	if err != nil {
		t.Fatal(err)
	}
	if record.Sequence != "7" || record.Key != `{"S":"a"}` || !record.At.Equal(time.UnixMilli(1767322445500)) {
		t.Errorf("record: got %+v, want sequence 7 of key a", record)
	}
	for _, part := range []string{`"12345678901234567890.5"`, `"AAE="`, `"eventSourceARN":"arn:stream"`} {
		if !strings.Contains(string(record.Body), part) {
			t.Errorf("body: got %s, want %s in it", record.Body, part)
		}
	}
	if _, err := recordOf(json.RawMessage(`{"dynamodb":{"Keys":{}}}`), "arn:stream"); err == nil {
		t.Error("record without sequence number and key: got no error")
	}
}
