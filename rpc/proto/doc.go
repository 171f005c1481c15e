// Package proto holds the wire structs, method names and error codes of
// confine's protocol. Nothing in it runs.
//
// docs/protocol.md is the contract in words and docs/protocol.schema.json the
// same as a JSON Schema, generated from this package; a test fails when code,
// schema and document drift apart.
package proto

//go:generate go test -run TestSchemaIsThatOfTheCode -update .
