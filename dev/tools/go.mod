module kivuko/dev/tools

go 1.26.8

tool (
	go.temporal.io/sdk/contrib/tools/workflowcheck
	golang.org/x/tools/cmd/deadcode
	golang.org/x/tools/cmd/goimports
	mvdan.cc/gofumpt
)

require (
	go.temporal.io/sdk/contrib/tools/workflowcheck v0.6.0 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/telemetry v0.0.0-20261009151841-97e8ea77aa2a // indirect
	golang.org/x/tools v0.52.0 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
	mvdan.cc/gofumpt v0.12.0 // indirect
)
