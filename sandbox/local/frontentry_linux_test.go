package local_test

import "github.com/confine-dev/confine/sandbox/local"

func init() {
	testEntries["__start"] = local.StartInside
	testEntries["__attempt"] = local.AttemptAll
	testEntries["__keeper"] = local.Keep
}
