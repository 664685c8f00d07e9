.DEFAULT_GOAL := help
SHELL := /bin/bash

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
FUZZTIME ?= 20s

.PHONY: help
help: ## what can be done here
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: run
run: ## the whole product in one process, until Ctrl-C
	@echo building
	@go build -o .build/local ./infra/local
	@exec .build/local

.PHONY: run-aws
run-aws: ## the same addresses, served from an AWS on this machine (needs Python 3)
	@echo building
	@go build -o .build/emulator ./infra/emulator
	@exec .build/emulator

.PHONY: test
test: ## every test that needs nothing but Go
	go vet ./...
	go test ./...

EXPLORE_RUNS ?= 0

.PHONY: explore
explore: ## every schedule and every fault of the flows; FAULTS=2, EXPLORE_RUNS=… for a bound, EXPLORE_FLAGS=-markdown, REPLAY=… to see one run
	@go run ./internal/explore/run -faults $(or $(FAULTS),1) -runs $(EXPLORE_RUNS) $(EXPLORE_FLAGS) -replay '$(REPLAY)'

.PHONY: e2e
e2e: ## black-box suite, storage contract and state machine scenarios against run-aws; E2E_BASE=… for another place, E2E_ONLY=… for one part
	go run ./infra/e2e/run

.PHONY: validate
validate: ## linters of the template, and the template against the code (needs Python 3)
	go run ./infra/validate

.PHONY: sam-local
sam-local: ## merchant API under sam local with DynamoDB Local (needs Docker and the SAM CLI)
	@infra/docker/sam-local.sh

.PHONY: deploy
deploy: ## build and deploy to your AWS account; STAGE=prod for the one that moves money
	sam build
	sam deploy --config-env $(or $(STAGE),default)

.PHONY: lint
lint: ## golangci-lint, with the import rules
	go run $(GOLANGCI) run ./...

.PHONY: fmt
fmt: ## gofumpt and goimports
	go run $(GOLANGCI) fmt ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package; \
		done; done

# sam build calls these: one static binary for each function, named bootstrap.
build-%:
	@folder=$$(echo $* | sed -E 's/Function$$//; s/([a-z])([A-Z])/\1-\2/g' | tr A-Z a-z); \
	GOOS=linux GOARCH=$${FUNCTION_ARCH:-arm64} CGO_ENABLED=0 go build -tags lambda.norpc -trimpath -ldflags '-s -w' -o $(ARTIFACTS_DIR)/bootstrap ./functions/$$folder
