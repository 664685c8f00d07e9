package main

import (
	"encoding/json"
	"fmt"
	"go/types"
	"os"
	"slices"
	"strings"
)

// checkPolicies compares what each function calls with what its role allows: every action, and none more.
func checkPolicies(t template, c code) []string {
	var faults []string
	for _, f := range t.functions {
		found, err := c.facts(f.folder)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		needed := slices.Clone(found.needed)
		for i := range needed {
			needed[i] = strings.ReplaceAll(needed[i], ownSecret, f.secret)
		}
		for _, right := range without(slices.Clone(needed), f.granted) {
			faults = append(faults, fmt.Sprintf("%s calls what its role does not allow: %s", f.folder, right))
		}
		for _, right := range without(slices.Clone(f.granted), needed) {
			faults = append(faults, fmt.Sprintf("%s never calls what its role allows: %s", f.folder, right))
		}
	}
	return faults
}

// fromLambda are the variables that the Lambda service itself sets, and those that point a function at another AWS.
var fromLambda = []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"}

// checkVariables makes sure that a function gets every variable it reads, and that each variable has a reader.
func checkVariables(t template, c code) []string {
	var faults, read []string
	for _, f := range t.functions {
		found, err := c.facts(f.folder)
		if err != nil {
			continue // checkPolicies says so
		}
		declared := slices.Concat(t.shared, f.variables, fromLambda)
		for _, name := range without(slices.Clone(found.variables), declared) {
			faults = append(faults, fmt.Sprintf("%s reads %s, which the template does not declare", f.folder, name))
		}
		for _, name := range without(slices.Clone(f.variables), found.variables) {
			faults = append(faults, fmt.Sprintf("%s does not read %s, which the template declares for it", f.folder, name))
		}
		read = append(read, found.variables...)
	}
	for _, name := range without(slices.Clone(t.shared), read) {
		faults = append(faults, fmt.Sprintf("no function reads %s, which the template declares for all", name))
	}
	return faults
}

// checkFolders makes sure that template and folders name the same functions.
func checkFolders(t template, c code) []string {
	var faults []string
	for folder := range c.mains {
		if !slices.ContainsFunc(t.functions, func(f function) bool { return f.folder == folder }) {
			faults = append(faults, "functions/"+folder+" is no function of the template")
		}
	}
	return faults
}

// checkMetrics makes sure that no alarm watches a metric that nothing counts: it would stay silent for ever.
func checkMetrics(t template, c code) []string {
	var counted []string
	for p := range c.packages {
		for _, name := range p.Scope().Names() {
			if metric, ok := p.Scope().Lookup(name).(*types.Const); ok && strings.HasPrefix(name, "Metric") {
				counted = append(counted, strings.Trim(metric.Val().ExactString(), `"`))
			}
		}
	}
	var faults []string
	for _, metric := range without(slices.Clone(t.metrics), counted) {
		faults = append(faults, "an alarm watches "+metric+", which nothing counts")
	}
	return faults
}

// checkErrorNames makes sure that every error that the state machine tells apart is one that the product has: Step
// Functions knows an error of a Go function by the name of its type alone.
func checkErrorNames(definition string, c code) ([]string, error) {
	text, err := os.ReadFile(definition)
	if err != nil {
		return nil, err
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", definition, err)
	}
	failure := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	known := map[string]bool{}
	for p := range c.packages {
		for _, name := range p.Scope().Names() {
			named, ok := p.Scope().Lookup(name).(*types.TypeName)
			if ok && (types.Implements(named.Type(), failure) || types.Implements(types.NewPointer(named.Type()), failure)) {
				known[name] = true
			}
		}
	}
	var faults []string
	for _, name := range errorNames(document) {
		ofService := strings.HasPrefix(name, "States.") || strings.HasPrefix(name, "Lambda.") || strings.HasPrefix(name, "Sandbox.") || strings.HasPrefix(name, "Runtime.")
		if !ofService && !known[name] {
			faults = append(faults, fmt.Sprintf("%s tells %s apart, and no error type has that name", definition, name))
		}
	}
	return faults, nil
}

// errorNames are the names in every ErrorEquals of a definition.
func errorNames(document any) []string {
	var all []string
	switch document := document.(type) {
	case map[string]any:
		for key, value := range document {
			list, ok := value.([]any)
			if key != "ErrorEquals" || !ok {
				all = append(all, errorNames(value)...)
				continue
			}
			for _, name := range list {
				all = append(all, fmt.Sprint(name))
			}
		}
	case []any:
		for _, value := range document {
			all = append(all, errorNames(value)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
