// Package client is where the test of package contract compiles the Go client that is generated from the contract. It
// keeps the libraries of the generated code among the requirements of the module.
package client

import (
	_ "github.com/oapi-codegen/runtime"       // of the generated code
	_ "github.com/oapi-codegen/runtime/types" // of the generated code
)
