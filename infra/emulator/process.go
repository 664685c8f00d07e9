package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// startLimit is how long the emulator may take to answer; it takes half a second on a slow machine.
	startLimit = 30 * time.Second

	// stopLimit is how long the emulator may take to end its functions before it is killed with them.
	stopLimit = 3 * time.Second
)

// emulator is the running process and everything it started.
type emulator struct {
	command *exec.Cmd
	ended   chan struct{} // closed when the process is gone
	logPath string
}

// startEmulator starts the emulator on the loopback address and waits until it answers.
func startEmulator(ctx context.Context, python string, s settings) (*emulator, error) {
	if err := portFree(s.awsPort); err != nil {
		return nil, fmt.Errorf("AWS_PORT: %w", err)
	}
	logPath := filepath.Join(s.workDir(), "emulator.log")
	logFile, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("log of the emulator: %w", err)
	}
	defer func() { _ = logFile.Close() }()

	command := exec.Command(python, "infra/emulator/launch.py")
	command.Env = emulatorEnv(s)
	command.Stdout, command.Stderr = logFile, logFile
	// A group of its own, so that Ctrl-C in the terminal reaches this program first and it can stop things in order.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(command.SysProcAttr)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start of the emulator: %w", err)
	}
	e := &emulator{command: command, ended: make(chan struct{}), logPath: logPath}
	go func() {
		_ = command.Wait() // its end is the news, its code is not
		close(e.ended)
	}()
	if err := e.awaitHealthy(ctx, s.awsURL()+"/_ministack/health"); err != nil {
		e.stop()
		return nil, fmt.Errorf("emulator: %w (log in %s)", err, logPath)
	}
	return e, nil
}

// emulatorEnv is the whole environment of the emulator. Functions inherit it, so nothing of the developer's own
// environment is in it: a variable that the template forgets is missing here as it would be at AWS.
func emulatorEnv(s settings) []string {
	env := []string{
		"BIND_HOST=127.0.0.1",                     // its default is every interface
		"IOT_MTLS_ENABLED=0",                      // its second port, on every interface
		"GATEWAY_PORT=" + strconv.Itoa(s.awsPort), // also names its temporary folders apart
		"MINISTACK_HOST=localhost",                // host names of the API and the function URL end with it
		"MINISTACK_REGION=" + region,              //
		"AWS_ENDPOINT_URL=" + s.awsURL(),          // handed to the functions, so that they call the emulator
		"LAMBDA_EXECUTOR=local",                   // Go binaries run natively; no Docker
		"AUTH=true",                               // IAM is enforced: each function has the rights of its role, none more
		"AWS_ACCESS_KEY_ID=" + rootKey,            // the account's root, which this program is
		"AWS_SECRET_ACCESS_KEY=" + rootKey,        //
		"LOG_LEVEL=INFO",                          // the emulator's own
		"PYTHONUNBUFFERED=1", "PYTHONHASHSEED=0",  //
		"PATH=" + os.Getenv("PATH"),              //
		"HOME=" + os.Getenv("HOME"),              //
		"TMPDIR=" + os.TempDir(), "LANG=C.UTF-8", //
	}
	return env
}

func (e *emulator) awaitHealthy(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("health: %w", err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", ctx.Err())
		case <-e.ended:
			return errors.New("it ended at once")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the emulator and its functions, which are of its process group. Safe to call again.
func (e *emulator) stop() {
	group := -e.command.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM) // an error means that it is gone
	select {
	case <-e.ended:
	case <-time.After(stopLimit):
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-e.ended
}

// portFree says whether the port can be listened on, which is the mistake made most often.
func portFree(port int) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return listener.Close()
}
