package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	// lintersDir is beside the emulator's environment and apart from it: both pin what the other needs in another version.
	lintersDir       = ".venv/validate"
	requirementsFile = "infra/validate/requirements.txt"
	transformScript  = "infra/validate/transform.py"
	transformedFile  = ".build/template.transformed.json"
)

// lint runs the linters on the template and on what CloudFormation gets.
func lint(ctx context.Context) error {
	if err := installLinters(ctx); err != nil {
		return err
	}
	bin := filepath.Join(lintersDir, "bin")
	if err := command(ctx, filepath.Join(bin, "sam"), "validate", "--lint", "--template", templateFile); err != nil {
		return err
	}
	if err := command(ctx, filepath.Join(bin, "cfn-lint"), templateFile); err != nil {
		return err
	}
	transformed, err := exec.CommandContext(ctx, filepath.Join(bin, "python"), transformScript, templateFile).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", transformScript, err)
	}
	if err := os.MkdirAll(filepath.Dir(transformedFile), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(transformedFile, transformed, 0o644); err != nil {
		return err
	}
	return command(ctx, filepath.Join(bin, "cfn-lint"), transformedFile)
}

// installLinters makes their virtual environment, once for each content of the requirements file.
func installLinters(ctx context.Context) error {
	requirements, err := os.ReadFile(requirementsFile)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(requirements)
	stamp, want := filepath.Join(lintersDir, ".installed"), hex.EncodeToString(sum[:])
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return nil
	}
	fmt.Println("installing the linters into", lintersDir)
	if err := command(ctx, "python3", "-m", "venv", lintersDir); err != nil {
		return err
	}
	err = command(ctx, filepath.Join(lintersDir, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirementsFile)
	if err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(want), 0o644)
}

func command(ctx context.Context, name string, arguments ...string) error {
	run := exec.CommandContext(ctx, name, arguments...)
	// The SAM CLI wants a region, though it asks none, and tells its makers of every run unless it is told not to.
	run.Env = append(os.Environ(), "AWS_DEFAULT_REGION=eu-central-1", "SAM_CLI_TELEMETRY=0")
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	if err := run.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}
