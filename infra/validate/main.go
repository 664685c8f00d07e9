// Command validate checks template.yaml before anybody deploys it: by the linters of SAM and CloudFormation, on the
// template and on what the SAM transform makes of it, and against the code. Every action that a function calls is in
// its role's policy and none more, every environment variable it reads is declared, every error that the state machine
// tells apart is a type of the product, and every metric that an alarm watches is counted somewhere.
//
// It is started from the repository's root. With -code it leaves the linters out, which need Python and, once, the
// network.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

const (
	templateFile   = "template.yaml"
	definitionFile = "infra/statemachines/checkout.asl.json"
)

func main() {
	codeOnly := flag.Bool("code", false, "compare template and code only, without the linters")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	faults, err := compare()
	if err == nil && !*codeOnly {
		err = lint(ctx)
	}
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, "validate:", fault)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "validate:", err)
	}
	if err != nil || len(faults) > 0 {
		os.Exit(1)
	}
	fmt.Println("validate: template and code agree")
}

// compare runs every check of the template against the code.
func compare() ([]string, error) {
	t, err := readTemplate(templateFile)
	if err != nil {
		return nil, err
	}
	c, err := loadCode()
	if err != nil {
		return nil, err
	}
	faults, err := checkErrorNames(definitionFile, c)
	if err != nil {
		return nil, err
	}
	for _, check := range []func(template, code) []string{checkFolders, checkPolicies, checkVariables, checkMetrics} {
		faults = append(faults, check(t, c)...)
	}
	return faults, nil
}
