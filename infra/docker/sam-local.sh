#!/usr/bin/env bash
# The merchant API under `sam local`, on DynamoDB Local (or, with DYNAMODB=extenddb, on ExtendDB), until Ctrl-C.
# It needs Docker and the SAM CLI. Not run here: webhooks, streams, schedules and checkouts; `make run-aws` has them.
set -euo pipefail
cd "$(dirname "$0")/../.."

compose=(docker compose -f infra/docker/compose.yaml)
case "${DYNAMODB:-dynamodb}" in
dynamodb) export DYNAMODB_URL=http://dynamodb:8000 ;;
extenddb)
  export DYNAMODB_URL=http://extenddb:18080
  compose+=(--profile extenddb)
  ;;
*)
  echo "DYNAMODB is dynamodb or extenddb" >&2
  exit 1
  ;;
esac
arch=$(go env GOARCH)

CGO_ENABLED=0 GOOS=linux go build -o .build/companion ./infra/docker
trap '"${compose[@]}" down --volumes' EXIT
"${compose[@]}" up --detach "${DYNAMODB:-dynamodb}" companion

FUNCTION_ARCH=$arch sam build
go run ./infra/docker template .aws-sam/build/template.yaml .aws-sam/build/local.yaml
sed "s|http://dynamodb:8000|$DYNAMODB_URL|" infra/docker/env.json >.build/env.json

# The key is the example of AWS's documentation, the only one that ExtendDB takes; DynamoDB Local takes any.
AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY AWS_REGION=us-east-1 \
  SAM_CLI_TELEMETRY=0 sam local start-api --template .aws-sam/build/local.yaml --host 127.0.0.1 --port "${API_PORT:-3000}" \
  --docker-network kessai --env-vars .build/env.json --parameter-overrides DefaultPsp=simulator SimulatorUrl=http://companion:3002
