package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// logLimit bounds how long the end of a run waits for the functions' logs.
const logLimit = 10 * time.Second

// keepLogs writes what the functions logged into one file, function by function, since the emulator takes it along when
// it ends. While it runs the logs are in CloudWatch Logs, as at AWS.
func keepLogs(ctx context.Context, s settings) error {
	ctx, cancel := context.WithTimeout(ctx, logLimit)
	defer cancel()
	names, err := functionNames()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, name := range names {
		if err := readLog(ctx, wire{url: s.awsURL()}, "/aws/lambda/"+stackName+"-"+name, &text); err != nil {
			return fmt.Errorf("log of function %s: %w", name, err)
		}
	}
	path := filepath.Join(s.workDir(), "functions.log")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("logs of the functions: %w", err)
	}
	fmt.Println("logs of the functions are in", path)
	return nil
}

func readLog(ctx context.Context, w wire, group string, into *bytes.Buffer) error {
	for token := ""; ; {
		in := map[string]any{"logGroupName": group, "limit": 10000}
		if token != "" {
			in["nextToken"] = token
		}
		var answer struct {
			Events    []struct{ Message string }
			NextToken string
		}
		if err := w.logs(ctx, "FilterLogEvents", in, &answer); err != nil {
			return err
		}
		for _, event := range answer.Events {
			if !ofPlatform(event.Message) {
				fmt.Fprintf(into, "%s\t%s\n", group, event.Message)
			}
		}
		if token = answer.NextToken; token == "" {
			return nil
		}
	}
}

// ofPlatform says whether a line is one of those that Lambda writes around each call.
func ofPlatform(line string) bool {
	for _, start := range []string{"START ", "END ", "REPORT "} {
		if strings.HasPrefix(line, start+"RequestId: ") {
			return true
		}
	}
	return false
}
