// Package client keeps the libraries of generated clients among the module's requirements. The test of package contract
// compiles the generated Go client here.
package client

import (
	_ "github.com/oapi-codegen/runtime"       // of the generated code
	_ "github.com/oapi-codegen/runtime/types" // of the generated code
)
