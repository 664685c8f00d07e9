package main

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"
)

// endpoints are the variables that point a function at the services beside it. `sam local` gives a function only such
// variables as its template declares, and the product's template has no place for them: at AWS they are not set.
var endpoints = []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SECRETS_MANAGER", "AWS_ENDPOINT_URL_SFN"}

// writeTemplate declares the endpoint variables, for env.json to fill in, and the architecture that the functions beside
// the template were built for, so that those built for this machine run without emulation. What `sam local` can't read
// is taken out.
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
	simplify(child(document.Content[0], "Resources"))
	result, err := yaml.Marshal(&document)
	if err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return os.WriteFile(out, result, 0o644)
}

// simplify writes resources so that `sam local` finds what a route calls, and starts. It knows no name that is made from
// the stack's, so functions go by their ids. It wants to know what identifies a caller; every request has a route, so
// every request reaches the authorizer, as it does at AWS.
func simplify(resources *yaml.Node) {
	for i := 0; resources != nil && i+1 < len(resources.Content); i += 2 {
		resource := resources.Content[i+1]
		kind, properties := child(resource, "Type"), child(resource, "Properties")
		if kind == nil || properties == nil {
			continue
		}
		switch kind.Value {
		case "AWS::Serverless::Function":
			remove(properties, "FunctionName")
		case "AWS::ApiGatewayV2::Authorizer":
			remove(properties, "IdentitySource")
			sources := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{scalar("$context.routeKey")}}
			properties.Content = append(properties.Content, scalar("IdentitySource"), sources)
		}
	}
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

func remove(mapping *yaml.Node, key string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = slices.Delete(mapping.Content, i, i+2)
			return
		}
	}
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}
