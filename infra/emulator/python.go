package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

const (
	venvDir          = ".venv"
	requirementsFile = "infra/emulator/requirements.txt"
)

// ensurePython makes the virtual environment that the emulator runs in, once for each content of the requirements
// file, and returns its interpreter. Runs that start at the same time wait for the first one to finish.
func ensurePython(ctx context.Context) (string, error) {
	requirements, err := os.ReadFile(requirementsFile)
	if err != nil {
		return "", fmt.Errorf("requirements of the emulator: %w", err)
	}
	if err := os.MkdirAll(venvDir, 0o755); err != nil {
		return "", fmt.Errorf("folder for the emulator: %w", err)
	}
	unlock, err := lockFile(filepath.Join(venvDir, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()

	python, err := filepath.Abs(filepath.Join(venvDir, "bin", "python"))
	if err != nil {
		return "", fmt.Errorf("place of the emulator: %w", err)
	}
	sum := sha256.Sum256(requirements)
	stamp, want := filepath.Join(venvDir, ".installed"), hex.EncodeToString(sum[:])
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return python, nil
	}
	fmt.Println("installing the emulator into", venvDir)
	for _, command := range [][]string{
		{"python3", "-m", "venv", venvDir},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirementsFile},
	} {
		run := exec.CommandContext(ctx, command[0], command[1:]...)
		run.Stdout, run.Stderr = os.Stderr, os.Stderr
		if err := run.Run(); err != nil {
			return "", fmt.Errorf("%v: %w", command, err)
		}
	}
	if err := os.WriteFile(stamp, []byte(want), 0o644); err != nil {
		return "", fmt.Errorf("note of what is installed: %w", err)
	}
	return python, nil
}

// lockFile waits until it alone holds the file. The kernel lets go of it when the process ends, however it ends.
func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}
