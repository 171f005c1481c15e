// Package sandbox defines modes, policies, commands, results and the Provider
// interface that every way of confining a command implements.
//
// It holds values and rules, not mechanisms: what is enforced and how lives in
// the provider packages below it (landlock, local and their peers). It never
// asks a person anything (package approval does) and never speaks JSON-RPC
// (package rpc does).
//
//	root, err := sandbox.DeclareRoot("/home/me/project", sandbox.Forbidden{Home: "/home/me"})
//	policy := sandbox.Policy{Mode: sandbox.WorkspaceWrite, Roots: []*sandbox.Root{root}}
//	process, err := provider.Start(ctx, sandbox.Spec{Command: "go test ./...", Dir: root.Path, Policy: policy})
//	result, err := process.Wait()
package sandbox
