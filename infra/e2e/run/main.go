// Command run starts the product with short durations, runs three parts against it,
// and stops it. Its exit status is theirs.
//
//   - suite: the black-box suite, against the product.
//   - contract: the storage contract, against the DynamoDB of E2E_TARGET=aws.
//   - machines: the scenarios of state machines, against its Step Functions; package
//     infra/emulator/machines says how, and which scenarios are known to differ there.
//
// It is started from the repository's root. E2E_TARGET is aws (the default: the
// program of make run-aws) or local (that of make run), which has no AWS to run
// the last two parts. E2E_ONLY names the one part to run. Nothing is started when
// what it needs is named: E2E_BASE for the suite, E2E_AWS for the others; they run
// against what is there.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// readyLimit is for a first run, which installs the emulator.
	readyLimit = 10 * time.Minute
	// stopLimit is how long the product may take to stop in order before it is killed.
	stopLimit = 20 * time.Second
	// shownLines of a log say why a program ended.
	shownLines = 20
	// suiteLimit is above what the suite takes on a busy machine.
	suiteLimit = "25m"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		cancel()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	only, err := onlyPart()
	if err != nil {
		return err
	}
	_, product := os.LookupEnv("E2E_BASE")
	endpoint, aws := os.LookupEnv("E2E_AWS")
	if product || aws {
		there := place{endpoint: endpoint}
		return there.run(ctx, only, map[string]bool{partSuite: product, partContract: aws, partMachines: aws})
	}
	name, set := os.LookupEnv("E2E_TARGET")
	if !set {
		name = "aws"
	}
	p, known := programs[name]
	if !known {
		return fmt.Errorf("E2E_TARGET=%q is neither aws nor local", name)
	}
	ports, err := freePorts()
	if err != nil {
		return err
	}
	started, err := start(ctx, name, p, ports)
	if err != nil {
		return err
	}
	defer started.stop()
	there := place{endpoint: ports.address("AWS_PORT"), suite: p.suiteEnvironment(ports)}
	err = there.run(ctx, only, map[string]bool{partSuite: true, partContract: p.aws, partMachines: p.aws})
	if err != nil {
		fmt.Println("the log of the product is in", started.logPath)
	}
	return err
}

// goTest runs tests, their output on this terminal.
func goTest(ctx context.Context, environment []string, target string, flags ...string) error {
	test := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-timeout", suiteLimit, target}, flags...)...)
	test.Env = append(os.Environ(), environment...)
	test.Stdout, test.Stderr = os.Stdout, os.Stderr
	test.Cancel = func() error { return test.Process.Signal(os.Interrupt) }
	test.WaitDelay = stopLimit
	if err := test.Run(); err != nil {
		return fmt.Errorf("tests of %s: %w", target, err)
	}
	return nil
}

// product is the running program.
type product struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it is gone
	logPath string
}

// start builds and starts a program, and waits until it says that it is ready.
func start(ctx context.Context, name string, p program, ports ports) (*product, error) {
	binary := filepath.Join(".build", "e2e-"+name)
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, p.source)
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build %s: %w", p.source, err)
	}
	logPath := binary + ".log"
	logFile, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("log of the product: %w", err)
	}
	defer func() { _ = logFile.Close() }()
	command := exec.Command(binary)
	command.Env = append(os.Environ(), append(ports.environment(), p.durations...)...)
	command.Stderr = logFile
	// A group of its own, so that Ctrl-C ends the tests first and then the product, in order.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	terminal, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("output of %s: %w", binary, err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	started := &product{command: command, ended: make(chan struct{}), logPath: logPath}
	ready := make(chan struct{})
	go func() {
		follow(terminal, ready)
		_ = command.Wait() // its end is the news, its code is not
		close(started.ended)
	}()
	select {
	case <-ready:
		return started, nil
	case <-started.ended:
		return nil, fmt.Errorf("%s ended before it was ready:\n%s", p.source, lastLines(logPath))
	case <-ctx.Done():
		started.stop()
		return nil, ctx.Err()
	case <-time.After(readyLimit):
		started.stop()
		return nil, fmt.Errorf("%s was not ready within %s (log in %s)", p.source, readyLimit, logPath)
	}
}

// lastLines is the end of a log, where the reason is.
func lastLines(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-shownLines):], "\n")
}

// follow copies the program's terminal to this one and closes ready at the line
// that says so.
func follow(terminal io.Reader, ready chan<- struct{}) {
	said := false
	for lines := bufio.NewScanner(terminal); lines.Scan(); {
		fmt.Println(lines.Text())
		if !said && strings.HasPrefix(lines.Text(), "ready") {
			said = true
			close(ready)
		}
	}
}

func (p *product) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		fmt.Fprintf(os.Stderr, "e2e: the product did not stop within %s\n", stopLimit)
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
		<-p.ended
	}
}
