module github.com/confine-dev/confine

go 1.26.0

require (
	github.com/pelletier/go-toml/v2 v2.4.3
	github.com/sourcegraph/jsonrpc2 v0.2.3
	go.lsp.dev/protocol v0.12.0
	golang.org/x/sys v0.50.0
)
