// Package sandboxtest is the suite that every provider passes, and an
// in-memory Fake for the tests of what lies above the sandbox.
//
// The suite is a table of operations and expected outcomes. For each row the
// test binary runs itself inside the sandbox as one child process, which tries
// one operation with plain system calls and says what came of it; then the
// suite looks at the host. A refusal row must be refused wherever the run's
// facts call its facet enforced, and where they do not, the row must say
// whether it gets through: the facts have to be true in both directions. Each
// refusal row is also run with nothing confined, where it must succeed, so that
// no row passes because it cannot do what it says.
//
// The table runs in up to four worlds: as root and as a plain user, each with
// user namespaces and on a host that refuses them. A provider's test is a
// TestMain that calls Child and a test that calls Run.
package sandboxtest
