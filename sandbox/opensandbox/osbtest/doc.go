// Package osbtest is an OpenSandbox service in memory, for tests: the lifecycle
// API, the execd API and the one-call contract, on 127.0.0.1. It runs commands for
// real, by bash in a scratch folder of their own, and confines nothing.
//
// It answers as the real service was seen to, oddities included: events without
// the prefix of their content type, exit codes as text, lines without their ends,
// commands that outlive the connection. Every call can be made to fail in a chosen
// way (Inject, Hold, Chaos), and the Ledger says what really happened, which is
// what a client's story is compared with.
package osbtest
