//go:build !unix

package protect

const openFlags = 0
