package sandbox

import (
	"slices"
	"strings"
)

// opUnshare is making a namespace. The sandbox refuses it by a filter that answers
// before an observer can look, so that messages are the only evidence. They do not say
// whether a plain user wanted another namespace without a user namespace, which the
// host refuses as well.
const opUnshare = "unshare"

// userNamespace stands for every namespace: an unprivileged program makes a user
// namespace first, for the privileges that all others take (user_namespaces(7)).
const userNamespace = "/proc/self/ns/user"

// noSandbox is what Chromium and all that is built on it say in place of an error.
const noSandbox = "no usable sandbox!"

// namespaceWords are how programs speak of it beside "operation not permitted", in
// lower case. None is what a file is called.
var namespaceWords = []string{
	"new namespace", "user namespace", // bwrap, Chromium
	"unshare failed", "unshare(", // unshare; buildah, podman
	"clone_new", "clone(", "clone3(", // nsjail and whoever prints the call
	`"clone":`,                 // Bazel's linux-sandbox
	"cannot clone:",            // podman
	"cloning builder process:", // Nix
	"fork/exec /proc/self/exe", // Go programs that put themselves into one
}

// refusesNamespace reports whether a line that speaks of EPERM is about a namespace.
func refusesNamespace(line string) bool {
	lower := lowerASCII(line)
	return strings.Contains(lower, noSandbox) || slices.ContainsFunc(namespaceWords, func(word string) bool { return strings.Contains(lower, word) })
}
