package main

import (
	"archive/zip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
)

// functionsDir has one folder for each function.
const functionsDir = "functions"

// functionNames lists the folders that are a program.
func functionNames() ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(functionsDir, "*", "main.go"))
	if err != nil {
		return nil, fmt.Errorf("folders of functions: %w", err)
	}
	var names []string
	for _, path := range mains {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	sort.Strings(names)
	return names, nil
}

// buildFunctions builds every function as a deploy does, except for the processor: the emulator runs the binary
// itself, so it is this machine's. It returns the path of each zip by the function's name.
func buildFunctions(ctx context.Context, dir string) (map[string]string, error) {
	names, err := functionNames()
	if err != nil {
		return nil, err
	}
	binaries := filepath.Join(dir, "functions")
	// Binaries of the last run stay: Go links none again that is still up to date.
	if err := os.MkdirAll(binaries, 0o755); err != nil {
		return nil, fmt.Errorf("folder of functions: %w", err)
	}
	arguments := []string{"build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", binaries}
	for _, name := range names {
		arguments = append(arguments, "./"+filepath.Join(functionsDir, name))
	}
	build := exec.CommandContext(ctx, "go", arguments...)
	// The emulator starts the binaries itself, so they are for the system that it is on.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build of functions: %w", err)
	}
	zips := map[string]string{}
	for _, name := range names {
		zips[name] = filepath.Join(dir, name+".zip")
		if err := zipBootstrap(filepath.Join(binaries, name), zips[name]); err != nil {
			return nil, fmt.Errorf("zip of function %s: %w", name, err)
		}
	}
	return zips, nil
}

// zipBootstrap packs the binary under the one name that the provided runtime starts.
func zipBootstrap(bootstrap, path string) (err error) {
	content, err := os.ReadFile(bootstrap)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	archive := zip.NewWriter(file)
	// Stored, since packing eleven of them takes longer than this machine gains from it.
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Store}
	header.SetMode(0o755)
	entry, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := entry.Write(content); err != nil {
		return err
	}
	return archive.Close()
}
