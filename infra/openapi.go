// Package infra holds what describes the product to the outside world. The
// programs that run it locally are in the folders below.
package infra

import _ "embed"

// OpenAPI is the OpenAPI 3.1 document of the merchant and operator API and of
// the webhook ingress, in YAML: every path, status, field and code that an
// answer may hold. It is what merchants build against, and tests hold every
// answer to it. Treat it as read-only.
//
//go:embed openapi.yaml
var OpenAPI []byte
