package main

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"

	"gopkg.in/yaml.v3"
)

// endpoints are the variables that point a function at the services beside it. `sam local` gives a function only such
// variables as its template declares, and the product's template has no place for them: at AWS they are not set.
var endpoints = []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SECRETS_MANAGER"}

// writeTemplate declares the endpoint variables, for env.json to fill in, and the architecture that the functions beside
// the template were built for, so that those built for this machine run without emulation.
func writeTemplate(in, out string) error {
	text, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	function := child(child(document.Content[0], "Globals"), "Function")
	variables := child(child(function, "Environment"), "Variables")
	platforms := child(function, "Architectures")
	if variables == nil || platforms == nil {
		return fmt.Errorf("%s: no variables or no architecture for all functions", in)
	}
	architecture, err := builtFor(filepath.Join(filepath.Dir(in), "ApiFunction", "bootstrap"))
	if err != nil {
		return err
	}
	for _, name := range endpoints {
		variables.Content = append(variables.Content, scalar(name), scalar(""))
	}
	platforms.Content = []*yaml.Node{scalar(architecture)}
	result, err := yaml.Marshal(&document)
	if err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return os.WriteFile(out, result, 0o644)
}

// architectures that Lambda has.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "arm64"}

// builtFor is the architecture of a binary, as the template names it.
func builtFor(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("built function: %w", err)
	}
	defer func() { _ = file.Close() }()
	if architecture, ok := architectures[file.Machine]; ok {
		return architecture, nil
	}
	return "", fmt.Errorf("%s is built for %s, which Lambda has not", path, file.Machine)
}

func child(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; mapping != nil && i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}
