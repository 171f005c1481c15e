//go:build !unix

package opensandbox

const openFlags = 0
