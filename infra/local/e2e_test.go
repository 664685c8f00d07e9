package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kessai/kessai/infra/e2e"
	"github.com/kessai/kessai/internal/api/apitest"
)

const (
	// runVariable makes the test binary be the program itself.
	runVariable = "KESSAI_TEST_RUN"
	// sideBySide is how many claims of the suite run at a time. They wait most of the time.
	sideBySide = "32"
	startLimit = 30 * time.Second
	stopLimit  = 10 * time.Second
)

// durations are short, so that what they bound can be seen.
var durations = map[string]string{
	"PAYMENT_EXPIRY": "12s", "PSP_TIMEOUT": "2s", "RECONCILE_AFTER": "500ms", "RECONCILE_EVERY": "500ms", "LEASE_TTL": "8s", "IN_PROGRESS_TTL": "8s",
}

func TestMain(m *testing.M) {
	if os.Getenv(runVariable) != "" {
		main()
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestProductKeepsTheContract starts the program, checks it from outside, and looks
// at what it wrote.
func TestProductKeepsTheContract(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute")
	}
	target := e2e.Local()
	ports := freePorts(t, 3)
	target.API, target.Webhook, target.PSP = loopback(ports[0]), loopback(ports[1]), loopback(ports[2])
	for name, into := range map[string]*time.Duration{"PAYMENT_EXPIRY": &target.Expiry, "PSP_TIMEOUT": &target.PSPTimeout} {
		length, err := time.ParseDuration(durations[name])
		if err != nil {
			t.Fatal(err)
		}
		*into = length
	}
	target.Judge = apitest.New(t).Check
	logs := filepath.Join(t.TempDir(), "log")
	stop, line := start(t, ports, logs)
	onlyLoopback(t, ports)
	pasted(t, line)
	e2e.Suite(t, target)
	stop()
	checkLog(t, logs)
}

// start runs the program until stop is called, which checks that it ends well. line
// is the one to copy and paste.
func start(t *testing.T, ports []int, logs string) (stop func(), line string) {
	t.Helper()
	logFile, err := os.Create(logs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = logFile.Close() })
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), runVariable+"=1", fmt.Sprintf("API_PORT=%d", ports[0]),
		fmt.Sprintf("WEBHOOK_PORT=%d", ports[1]), fmt.Sprintf("PSP_PORT=%d", ports[2]))
	for name, value := range durations {
		program.Env = append(program.Env, name+"="+value)
	}
	program.Stderr = logFile
	terminal, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill() })
	line = awaitReady(t, terminal, ports[0])
	return func() {
		ended := make(chan error, 1)
		go func() { ended <- program.Wait() }()
		if err := program.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("got %v at its end, want success", err)
			}
		case <-time.After(stopLimit):
			t.Errorf("the program runs %s after it was told to end", stopLimit)
		}
	}, line
}

// awaitReady reads the terminal until the line that says so and the line to copy
// after it, and checks that health agrees.
func awaitReady(t *testing.T, terminal io.Reader, port int) (toCopy string) {
	t.Helper()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(terminal); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	limit := time.After(startLimit)
	ready := false
	for {
		select {
		case line, open := <-lines:
			switch {
			case !open:
				t.Fatal("the program ended before it was ready")
			case strings.HasPrefix(line, "ready"):
				ready = true
			case strings.HasPrefix(line, "curl "):
				if !ready {
					t.Error("the line to copy comes before the one that starts with ready")
				}
				answer, err := http.Get(loopback(port) + "/healthz")
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Errorf("got health %s when it is ready, want 200", answer.Status)
				}
				go func() {
					for range lines { // nothing more is expected of the terminal
					}
				}()
				return line
			}
		case <-limit:
			t.Fatalf("not ready within %s", startLimit)
		}
	}
}

// onlyLoopback checks that nothing answers at this machine's other addresses.
func onlyLoopback(t *testing.T, ports []int) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if !ok || network.IP.IsLoopback() || network.IP.To4() == nil {
			continue
		}
		for _, port := range ports {
			at := net.JoinHostPort(network.IP.String(), strconv.Itoa(port))
			if connection, err := net.DialTimeout("tcp", at, time.Second); err == nil {
				_ = connection.Close()
				t.Errorf("something answers at %s, want 127.0.0.1 only", at)
			}
		}
	}
}

// pasted checks that the line to copy makes a payment.
func pasted(t *testing.T, line string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("there is no curl here to paste the line to")
		return
	}
	output, err := exec.CommandContext(t.Context(), "sh", "-c", line).Output()
	if err != nil || !bytes.Contains(output, []byte(`"status":"captured"`)) {
		t.Errorf("%s\ngot %s (%v), want a captured payment", line, output, err)
	}
}

// checkLog looks for what must never be logged.
func checkLog(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) == 0 {
		t.Error("the program logged nothing")
	}
	forbidden := []string{
		"/redirect/", "redirect_url", "whsec_", adyenHMACKey, operatorKey, "a@example.com",
		"4242" + "424242424242", "panic", "tok_captured", "hmacSignature",
	}
	for _, key := range merchants {
		forbidden = append(forbidden, key)
	}
	for line := range bytes.Lines(text) {
		for _, word := range forbidden {
			if bytes.Contains(line, []byte(word)) {
				t.Errorf("a log line holds %q: %.300s", word, line)
			}
		}
		if !bytes.HasPrefix(line, []byte("{")) {
			t.Errorf("a log line is no JSON: %.300s", line)
		}
	}
}

// freePorts are ports that were free a moment ago.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}
